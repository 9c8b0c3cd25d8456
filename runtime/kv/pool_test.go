package kv_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/kv"
)

// Lengths at the edge of a block (case D7).
func TestBlocks(t *testing.T) {
	for _, tc := range []struct{ tokens, want int }{{-1, 0}, {0, 0}, {1, 1}, {15, 1}, {16, 1}, {17, 2}, {32, 2}, {33, 3}} {
		if got := kv.Blocks(tc.tokens, 16); got != tc.want {
			t.Errorf("%d tokens in blocks of 16: %d, want %d", tc.tokens, got, tc.want)
		}
	}
	if got := kv.Blocks(1<<62, 1); got != 1<<62 {
		t.Errorf("no overflow: %d", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct{ tokens, block int }{{10, 0}, {10, -1}, {3, 4}, {0, 1}, {-5, 1}, {1 << 40, 1}} {
		if _, err := kv.New(kv.Config{Tokens: tc.tokens, Block: tc.block}); err == nil {
			t.Errorf("a pool of %d tokens in blocks of %d was made", tc.tokens, tc.block)
		}
	}
	p, err := kv.New(kv.Config{Tokens: 19, Block: 4})
	if err != nil || p.Total() != 4 || p.Block() != 4 || p.Free() != 4 || p.Spare() != 4 {
		t.Errorf("%+v %v", p, err)
	}
}

// user is a request as a test of the pool sees it.
type user struct {
	seq  kv.Seq
	text []event.Token // all it holds; its KV covers the first fed
	fed  int
}

// machine drives a pool at random and keeps what a runner would have written
// into each block.
type machine struct {
	p       *kv.Pool
	users   []*user
	written []uint64 // by position of the pool: a hash of the text up to there
	roll    func(n int) int
	noHit   bool
	hits    int
}

func chain(text []event.Token) (out []uint64) {
	x := uint64(7)
	for _, t := range text {
		x = (x ^ uint64(uint32(t))) * 1099511628211
		x ^= x >> 29
		out = append(out, x)
	}
	return out
}

func (m *machine) cell(u *user, pos int) *uint64 {
	b := m.p.Block()
	return &m.written[int(u.seq.IDs(0)[pos/b])*b+pos%b]
}

// feed writes all that u holds, into blocks that only u may hold.
func (m *machine) feed(u *user) error {
	from := min(u.fed, len(u.text)-1)
	if from < u.seq.Shared()*m.p.Block() {
		return fmt.Errorf("position %d is in the tree, %d blocks are", from, u.seq.Shared())
	}
	for pos, x := range chain(u.text) {
		switch {
		case pos >= from:
			*m.cell(u, pos) = x
		case *m.cell(u, pos) != x:
			return fmt.Errorf("position %d is not what was written for it", pos)
		}
	}
	u.fed = len(u.text)
	m.p.Index(&u.seq, u.text[:len(u.text)-1])
	return nil
}

func (m *machine) step() error {
	u := m.users[m.roll(len(m.users))]
	switch m.roll(8) {
	case 0:
		n := u.seq.Blocks()
		if got := m.p.Release(&u.seq, u.text[:u.fed]); got != n || u.seq.Blocks() != 0 {
			return fmt.Errorf("released %d blocks of %d", got, n)
		}
		u.text, u.fed = nil, 0
	case 1:
		if len(u.text) < 2 {
			break
		}
		at := m.roll(len(u.text)-1) + 1
		u.text = slices.Clone(u.text[:at])
		u.fed = min(u.fed, at)
		left := m.p.Cut(&u.seq, at)
		if left > at || at-left >= m.p.Block() {
			return fmt.Errorf("cut at %d left %d", at, left)
		}
		u.fed = min(u.fed, left)
	default:
		for range 1 + m.roll(5) {
			u.text = append(u.text, event.Token(m.roll(2)))
		}
		if u.seq.Blocks() == 0 {
			before := m.p.Clone()
			hit := m.p.Match(u.text)
			if again := m.p.Match(u.text); again != hit || !reflect.DeepEqual(before, m.p.Clone()) {
				return fmt.Errorf("matching changed the pool (case D6)")
			}
			if hit.Blocks*m.p.Block() >= len(u.text) || m.noHit && hit.Blocks > 0 {
				return fmt.Errorf("%d blocks found for %d tokens", hit.Blocks, len(u.text))
			}
			spare, idle := m.p.Spare(), m.p.Idle(hit)
			m.p.Take(&u.seq, hit, len(u.text)+m.roll(9))
			if m.p.Spare() != spare-idle {
				return fmt.Errorf("%d blocks to spare, %d of them found, %d left", spare, idle, m.p.Spare())
			}
			m.hits += hit.Blocks
			u.fed = hit.Blocks * m.p.Block()
		}
		fits := m.p.Need(&u.seq, len(u.text)) <= m.p.Spare()
		if got := m.p.Grow(&u.seq, len(u.text)); got != fits {
			return fmt.Errorf("grown to %d: %v, want %v", len(u.text), got, fits)
		}
		if !fits {
			u.text = u.text[:max(u.fed, min(1, len(u.text)))]
			break
		}
		if err := m.feed(u); err != nil {
			return err
		}
	}
	var seqs []*kv.Seq
	for _, u := range m.users {
		seqs = append(seqs, &u.seq)
		for pos, x := range chain(u.text[:u.fed]) {
			if *m.cell(u, pos) != x {
				return fmt.Errorf("position %d was written over", pos)
			}
		}
	}
	return m.p.Check(seqs)
}

func newMachine(cfg kv.Config, roll func(n int) int) (*machine, error) {
	p, err := kv.New(cfg)
	if err != nil {
		return nil, err
	}
	m := &machine{p: p, roll: roll, noHit: cfg.NoPrefix, written: make([]uint64, cfg.Tokens)}
	for range 4 {
		m.users = append(m.users, &user{})
	}
	return m, nil
}

// Whatever is taken, grown, cut and given back in whatever order: no block is
// lost or held twice, free, cached and used are the whole pool, nothing that can
// be found is written over, and what is found is what was written for the same
// tokens, also where all hashes are equal (INV-4, cases C5, D3, D6).
func TestPool(t *testing.T) {
	hits := 0
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 4).Draw(t, "block")
		m, err := newMachine(kv.Config{
			Tokens:   rapid.IntRange(1, 24).Draw(t, "total") * block,
			Block:    block,
			NoPrefix: rapid.IntRange(0, 4).Draw(t, "plain") == 0,
			Domain:   rapid.Uint64().Draw(t, "domain"),
		}, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "roll") })
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "collide") {
			m.p.Collide()
		}
		for range rapid.IntRange(1, 80).Draw(t, "operations") {
			if err := m.step(); err != nil {
				t.Fatal(err)
			}
		}
		for _, u := range m.users {
			m.p.Release(&u.seq, u.text[:u.fed])
		}
		if err := m.p.Check(nil); err != nil || m.p.Used() != 0 || m.p.Spare() != m.p.Total() {
			t.Fatalf("%d of %d blocks are back: %v", m.p.Spare(), m.p.Total(), err)
		}
		hits += m.hits
	})
	if hits < 20 {
		t.Errorf("only %d blocks were found; the test has lost its sense", hits)
	}
}

// Equal hashes and equal histories: the ids handed out do not depend on the
// hashes, only on what was found.
func TestCollisionChangesNoBlock(t *testing.T) {
	for seed := range uint64(50) {
		var ids [2][]event.Block
		for i := range ids {
			m, err := newMachine(kv.Config{Tokens: 48, Block: 2}, rand.New(rand.NewPCG(seed, 1)).IntN)
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				m.p.Collide()
			}
			for range 300 {
				if err := m.step(); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, u := range m.users {
					ids[i] = append(ids[i], u.seq.IDs(0)...)
				}
			}
		}
		if !slices.Equal(ids[0], ids[1]) {
			t.Fatalf("seed %d: a collision changes which blocks are handed out", seed)
		}
	}
}
