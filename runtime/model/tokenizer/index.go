package tokenizer

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// table holds the bytes of every token in one block, so that a vocabulary of
// 150,000 entries is three objects to the garbage collector.
type table struct {
	data []byte
	ends []uint32 // token id is data[ends[id]:ends[id+1]]; empty where the id is unused
}

// newTable lays out n tokens; text gives the bytes of an id, none where it is
// unused.
func newTable(n int, text func(id int) []byte) table {
	size := 0
	for id := range n {
		size += len(text(id))
	}
	t := table{data: make([]byte, 0, size), ends: make([]uint32, 1, n+1)}
	for id := range n {
		t.data = append(t.data, text(id)...)
		t.ends = append(t.ends, uint32(len(t.data)))
	}
	return t
}

func (t *table) size() int { return len(t.ends) - 1 }

func (t *table) bytes(id int32) []byte {
	a, b := t.ends[id], t.ends[id+1]
	if a == b {
		return nil
	}
	return t.data[a:b:b]
}

// index finds the token that is a given string of bytes. Its hash is seeded
// anew in each process, so a file cannot be made to collide.
type index struct {
	table *table
	seed  maphash.Seed
	slots []int32 // id+1, 0 where free; open addressing
}

func newIndex(t *table, n int) index {
	return index{table: t, seed: maphash.MakeSeed(), slots: make([]int32, slotsFor(n))}
}

// slotsFor is a power of two that n entries fill by less than two thirds.
func slotsFor(n int) int {
	return 1 << bits.Len(uint(n+n/2+1))
}

// add enters id and returns the token of the same bytes that is there already,
// or -1.
func (x *index) add(id int32) int32 {
	b := x.table.bytes(id)
	mask := len(x.slots) - 1
	for i := int(maphash.Bytes(x.seed, b)) & mask; ; i = (i + 1) & mask {
		switch have := x.slots[i] - 1; {
		case have < 0:
			x.slots[i] = id + 1
			return -1
		case bytes.Equal(x.table.bytes(have), b):
			return have
		}
	}
}

func (x *index) find(b []byte) (int32, bool) {
	return x.probe(maphash.Bytes(x.seed, b), func(have []byte) bool { return string(have) == string(b) })
}

func (x *index) findString(s string) (int32, bool) {
	return x.probe(maphash.String(x.seed, s), func(have []byte) bool { return string(have) == s })
}

func (x *index) probe(hash uint64, equal func([]byte) bool) (int32, bool) {
	mask := len(x.slots) - 1
	for i := int(hash) & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if id := x.slots[i] - 1; equal(x.table.bytes(id)) {
			return id, true
		}
	}
	return 0, false
}
