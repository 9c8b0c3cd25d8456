package plan

// intern numbers packed states in the order in which they are first met. It is
// an open hash table over one flat array: a state costs its words and 4 to 8
// bytes, and a lookup no allocation.
type intern struct {
	words int
	keys  []uint64 // state i at i*words
	slots []int32  // number of a state + 1; 0 is free
	used  int
}

func newIntern(words int) *intern {
	return &intern{words: words, slots: make([]int32, 256)}
}

// len is how many states are known.
func (t *intern) len() int { return t.used }

// key is the packed state with number i.
func (t *intern) key(i int) []uint64 { return t.keys[i*t.words : (i+1)*t.words] }

// id is the number of a state, a new one if it was not known.
func (t *intern) id(k []uint64) int {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	at := t.find(k)
	if t.slots[at] == 0 {
		t.used++
		t.keys = append(t.keys, k...)
		t.slots[at] = int32(t.used)
	}
	return int(t.slots[at]) - 1
}

// find is the slot of a state, a free one if it is not known.
func (t *intern) find(k []uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	for at := hash(k) & mask; ; at = (at + 1) & mask {
		i := int(t.slots[at]) - 1
		if i < 0 || same(t.key(i), k) {
			return at
		}
	}
}

func (t *intern) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	for i := range t.used {
		t.slots[t.find(t.key(i))] = int32(i + 1)
	}
}

// hash mixes the words by multiplication with an odd constant (Fibonacci
// hashing); the high bits are the good ones, so they are folded down.
func hash(k []uint64) uint64 {
	h := uint64(0)
	for _, w := range k {
		h = (h ^ w) * 0x9E3779B97F4A7C15
		h ^= h >> 32
	}
	return h
}

func same(a, b []uint64) bool {
	for i, w := range a {
		if b[i] != w {
			return false
		}
	}
	return true
}
