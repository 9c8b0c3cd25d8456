package tokenizer

import "math/rand/v2"

// pair of neighbouring tokens in a word.
type pair struct{ left, right int32 }

// merged is what a pair becomes and how early it was learned.
type merged struct {
	rank int32
	id   int32
}

// mergeTable maps a pair to its merge: open addressing in one block, because
// the look-up is most of what encoding costs. The hash is seeded anew in each
// process, so a file cannot be made to collide.
type mergeTable struct {
	slots []mergeSlot
	seed  uint64
	n     int
}

type mergeSlot struct {
	key uint64 // pair+1, 0 where free
	merged
}

func newMergeTable() mergeTable {
	return mergeTable{slots: make([]mergeSlot, 1<<10), seed: rand.Uint64()}
}

func (t *mergeTable) grow() {
	old := t.slots
	t.slots = make([]mergeSlot, 2*len(old))
	for _, s := range old {
		if s.key != 0 {
			i := t.at(s.key)
			for t.slots[i].key != 0 {
				i = (i + 1) & (len(t.slots) - 1)
			}
			t.slots[i] = s
		}
	}
}

func (p pair) key() uint64 { return uint64(uint32(p.left))<<32 | uint64(uint32(p.right)) + 1 }

func (t *mergeTable) at(key uint64) int {
	h := (key ^ t.seed) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return int(h>>32^h) & (len(t.slots) - 1)
}

// add enters a merge; of two for the same pair the earlier one stays.
func (t *mergeTable) add(p pair, m merged) {
	if t.n >= len(t.slots)/3*2 {
		t.grow()
	}
	key := p.key()
	i := t.at(key)
	for ; t.slots[i].key != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].key == key {
			return
		}
	}
	t.slots[i] = mergeSlot{key, m}
	t.n++
}

func (t *mergeTable) find(p pair) (merged, bool) {
	key := p.key()
	i := t.at(key)
	for ; t.slots[i].key != 0; i = (i + 1) & (len(t.slots) - 1) {
		if t.slots[i].key == key {
			return t.slots[i].merged, true
		}
	}
	return merged{}, false
}
