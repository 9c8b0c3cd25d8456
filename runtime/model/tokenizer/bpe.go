package tokenizer

import "sync"

// part is a token of a word under way; parts form a list so that joining two
// is cheap.
type part struct {
	id         int32 // -1: joined into its left neighbour
	prev, next int32 // -1 at the ends
}

// join is a possible merge of the part at pos with the one after it.
type join struct {
	merged
	pos         int32
	left, right int32
}

// before is the order of BPE: lowest rank first, then leftmost.
func (a join) before(b join) bool {
	return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos
}

// shortWord is the length up to which scanning all pairs again for each merge
// is faster than a heap.
const shortWord = 32

// merge appends the tokens of one word: start from its bytes, join the pair of
// lowest rank (leftmost first) until none is left.
func (t *Tokenizer) merge(out []int32, word string) []int32 {
	switch {
	case len(word) == 1:
		return append(out, t.byteID[word[0]])
	case len(word) <= shortWord:
		return t.mergeShort(out, word)
	}
	return t.mergeLong(out, word)
}

// mergeShort keeps for each part what it would become with the one after it,
// so a merge costs two look-ups and a scan.
func (t *Tokenizer) mergeShort(out []int32, word string) []int32 {
	const none = 1<<31 - 1
	var (
		ids  [shortWord]int32
		next [shortWord]merged // of ids[i] and ids[i+1]
	)
	look := func(i int) {
		m, ok := t.merges.find(pair{ids[i], ids[i+1]})
		if !ok {
			m.rank = none
		}
		next[i] = m
	}
	n := len(word)
	for i := range n {
		ids[i] = t.byteID[word[i]]
	}
	for i := range n - 1 {
		look(i)
	}
	for {
		at, best := -1, int32(none)
		for i := range n - 1 {
			if next[i].rank < best {
				at, best = i, next[i].rank
			}
		}
		if at < 0 {
			return append(out, ids[:n]...)
		}
		ids[at] = next[at].id
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(next[at:n-2], next[at+1:n-1])
		n--
		if at > 0 {
			look(at - 1)
		}
		if at < n-1 {
			look(at)
		}
	}
}

// scratch is what mergeLong works on.
type scratch struct {
	parts []part
	heap  []join
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// keepScratch is the longest word whose memory is kept for the next one.
const keepScratch = 1 << 16

// mergeLong keeps the possible merges in a heap with stale entries: O(n log n)
// in the length of the word, whatever a user pastes.
func (t *Tokenizer) mergeLong(out []int32, word string) []int32 {
	s := scratches.Get().(*scratch)
	parts, heap := s.parts[:0], s.heap[:0]
	push := func(pos int32) {
		p := &parts[pos]
		if p.next < 0 {
			return
		}
		q := parts[p.next].id
		if m, ok := t.merges.find(pair{p.id, q}); ok {
			heap = heapPush(heap, join{m, pos, p.id, q})
		}
	}
	for i := range len(word) {
		parts = append(parts, part{id: t.byteID[word[i]], prev: int32(i) - 1, next: int32(i) + 1})
	}
	parts[len(parts)-1].next = -1
	for i := range parts {
		push(int32(i))
	}
	for len(heap) > 0 {
		var j join
		j, heap = heapPop(heap)
		p := &parts[j.pos]
		if p.id != j.left || p.next < 0 || parts[p.next].id != j.right {
			continue // one side was joined meanwhile
		}
		q := &parts[p.next]
		q.id = -1
		p.id, p.next = j.id, q.next
		if p.next >= 0 {
			parts[p.next].prev = j.pos
		}
		push(j.pos)
		if p.prev >= 0 {
			push(p.prev)
		}
	}
	for i := int32(0); i >= 0; i = parts[i].next {
		out = append(out, parts[i].id)
	}
	if len(word) <= keepScratch {
		s.parts, s.heap = parts, heap
		scratches.Put(s)
	}
	return out
}

func heapPush(h []join, j join) []join {
	h = append(h, j)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	return h
}

func heapPop(h []join) (join, []join) {
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	i := 0
	for {
		c := 2*i + 1
		if c >= last {
			return top, h
		}
		if c+1 < last && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			return top, h
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
