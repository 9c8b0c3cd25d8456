package tokenizer

// pair of neighbouring tokens in a word.
type pair struct{ left, right int32 }

// merged is what a pair becomes and how early it was learned.
type merged struct {
	rank int32
	id   int32
}

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

// merge appends the tokens of one word: start from its bytes, join the pair of
// lowest rank (leftmost first) until none is left. A heap with stale entries
// keeps it at O(n log n), whatever a user pastes.
func (t *Tokenizer) merge(out []int32, word string) []int32 {
	if len(word) == 1 {
		return append(out, t.byteID[word[0]])
	}
	parts := make([]part, len(word))
	heap := make([]join, 0, len(word))
	push := func(pos int32) {
		p := &parts[pos]
		if p.next < 0 {
			return
		}
		q := parts[p.next].id
		if m, ok := t.merges[pair{p.id, q}]; ok {
			heap = heapPush(heap, join{m, pos, p.id, q})
		}
	}
	for i := range parts {
		parts[i] = part{id: t.byteID[word[i]], prev: int32(i) - 1, next: int32(i) + 1}
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
