package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/model"
)

// sequence is one text on its way through random steps, with what each of its
// positions gives when it is computed alone.
type sequence struct {
	ids    []int32
	given  []given
	blocks []int32
	n      int // positions fed
}

// keeper hands out blocks as a core does: it counts who holds one, and keeps
// full ones that may be shared under the tokens they end.
type keeper struct {
	free  []int32
	users map[int32]int
	known map[string]int32 // tokens from the beginning to a block's end
	names map[int32]string
}

func newKeeper(blocks int) *keeper {
	k := &keeper{users: map[int32]int{}, known: map[string]int32{}, names: map[int32]string{}}
	for id := range blocks {
		k.free = append(k.free, int32(id))
	}
	return k
}

// take gives a block, the newest freed first, so that ids come back at once.
func (k *keeper) take() int32 {
	id := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	k.users[id] = 1
	return id
}

func (k *keeper) drop(id int32) {
	if k.users[id]--; k.users[id] == 0 {
		delete(k.known, k.names[id])
		delete(k.names, id)
		k.free = append(k.free, id)
	}
}

// share gives a sequence that holds nothing up to most blocks of its beginning.
func (k *keeper) share(s *sequence, most int) {
	for len(s.blocks) < most && s.n+model.BlockLen < len(s.ids) {
		id, ok := k.known[fmt.Sprint(s.ids[:s.n+model.BlockLen])]
		if !ok {
			return
		}
		k.users[id]++
		s.blocks = append(s.blocks, id)
		s.n += model.BlockLen
	}
}

// reach gives a sequence blocks for n positions.
func (k *keeper) reach(s *sequence, n int) {
	for len(s.blocks)*model.BlockLen < n {
		s.blocks = append(s.blocks, k.take())
	}
}

// publish makes the full blocks of a sequence known.
func (k *keeper) publish(s *sequence) {
	for i := 0; (i+1)*model.BlockLen <= s.n; i++ {
		name := fmt.Sprint(s.ids[:(i+1)*model.BlockLen])
		if _, ok := k.known[name]; !ok && k.names[s.blocks[i]] == "" {
			k.known[name], k.names[s.blocks[i]] = s.blocks[i], name
		}
	}
}

// preempt takes everything from a sequence.
func (k *keeper) preempt(s *sequence) {
	for _, id := range s.blocks {
		k.drop(id)
	}
	s.blocks, s.n = nil, 0
}

// lowest is where a sequence may start again: behind what others may read.
func (k *keeper) lowest(s *sequence) int {
	low := 0
	for i, id := range s.blocks {
		if k.names[id] != "" {
			low = (i + 1) * model.BlockLen
		}
	}
	return low
}

// Case G1: whatever the chunks, the neighbours, rewinds, shared beginnings,
// preemption and what a block held before, what a row gives is the bits of
// one token at a time in a pool of its own.
func TestForwardInvariance(t *testing.T) {
	big, _ := loadOdd(t)
	for name, m := range map[string]*model.Model{"tiny-37k": small(t), "odd": big} {
		t.Run(name, func(t *testing.T) {
			const length, most = 90, 6
			r := rand.New(rand.NewPCG(11, 11))
			begin := randomIDs(r, m, 52)
			texts := make([]sequence, 5)
			for i := range texts {
				s := &texts[i]
				s.ids = append(append(s.ids, begin[:i*13]...), randomIDs(r, m, length-i*13)...)
				s.given = alone(t, m, s.ids)
			}
			kv := m.NewPool(len(texts) * most)
			shared, lost := 0, 0
			var ws model.Workspace
			rapid.Check(t, func(t *rapid.T) {
				k := newKeeper(len(texts) * most)
				for i := range texts {
					texts[i].blocks, texts[i].n = nil, 0
				}
				for range rapid.IntRange(1, 10).Draw(t, "steps") {
					var rows []model.Row
					var who []*sequence
					for i := range texts {
						s := &texts[i]
						if rapid.IntRange(0, 9).Draw(t, "preempt") == 0 {
							lost += s.n
							k.preempt(s)
						}
						if !rapid.Bool().Draw(t, "in") {
							continue
						}
						if s.n == 0 {
							k.share(s, rapid.IntRange(0, most).Draw(t, "cached"))
							shared += s.n
						}
						top := min(s.n, length-1)
						start := rapid.IntRange(min(top, max(k.lowest(s), top-4)), top).Draw(t, "start")
						n := rapid.IntRange(1, min(40, length-start)).Draw(t, "n")
						if s.n > 0 && s.n%model.BlockLen == 0 && rapid.Bool().Draw(t, "again") {
							start, n = s.n-1, 1 // of a block that others may read
						}
						k.reach(s, start+n)
						s.n = start + n
						rows = append(rows, model.Row{
							Blocks: s.blocks, Start: start, Tokens: s.ids[start : start+n],
							Logits: rapid.Bool().Draw(t, "logits"), Hidden: rapid.Bool().Draw(t, "hidden"),
							Signals: rapid.Bool().Draw(t, "signals"),
						})
						who = append(who, s)
					}
					if len(rows) == 0 {
						continue
					}
					if err := m.Forward(&ws, kv, rows); err != nil {
						t.Fatal(err)
					}
					for i, row := range rows {
						s := who[i]
						if err := s.given[s.n-1].compare(&ws, i, &row); err != nil {
							t.Fatal(err)
						}
						k.publish(s)
					}
				}
			})
			if shared == 0 || lost == 0 {
				t.Errorf("%d positions were shared and %d lost: nothing was tried", shared, lost)
			}
			if kv.Taken() > len(texts)*most {
				t.Errorf("%d blocks have memory", kv.Taken())
			}
		})
	}
}
