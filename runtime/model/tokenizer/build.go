package tokenizer

import (
	"fmt"
	"strings"
)

// Bounds of token ids: the largest vocabularies in use have about 2^18, with
// few ids unused.
const (
	maxID    = 1 << 22
	maxHoles = 1 << 12
)

// maxAdded bounds the bytes of an added token, of which the longest in use has
// some dozens: in a chat each length is tried at each place where one may begin.
const maxAdded = 256

// vocabulary is what both file forms say about tokens.
type vocabulary struct {
	entries []entry // of the byte-level vocabulary
	data    []byte  // their bytes
	added   []addedToken
}

type entry struct {
	id       int32
	from, to int
}

type addedToken struct {
	id      int32
	text    string
	special bool
}

// looksSpecial tells control tokens by their form. Published files mark some of
// them, like Qwen's <|fim_prefix|>, as text; llama.cpp's converter corrects
// that by this rule, so a GGUF agrees with the files it was made from.
func looksSpecial(text string) bool {
	return strings.HasPrefix(text, "<|") && strings.HasSuffix(text, "|>") ||
		strings.HasPrefix(text, "<｜") && strings.HasSuffix(text, "｜>")
}

// size checks the ids and returns one more than the largest.
func (v *vocabulary) size() (int, error) {
	top := int32(-1)
	for _, e := range v.entries {
		if e.id < 0 || e.id > maxID {
			return 0, fmt.Errorf("token %.80q has id %d, allowed are 0..%d", v.data[e.from:e.to], e.id, maxID)
		}
		top = max(top, e.id)
	}
	for _, a := range v.added {
		if a.id < 0 || a.id > maxID || a.text == "" || len(a.text) > maxAdded {
			return 0, fmt.Errorf("added token %.80q of %d bytes has id %d: 1..%d bytes and an id 0..%d are needed", a.text, len(a.text), a.id, maxAdded, maxID)
		}
		top = max(top, a.id)
	}
	if known := len(v.entries) + len(v.added); int(top) >= known+maxHoles {
		return 0, fmt.Errorf("the largest id is %d, but only %d tokens are given", top, known)
	}
	return int(top) + 1, nil
}

// fill lays out the tokens and returns the index of the byte-level vocabulary.
func (t *Tokenizer) fill(v *vocabulary) (index, error) {
	n, err := v.size()
	if err != nil {
		return index{}, err
	}
	texts := make([][]byte, n)
	for _, e := range v.entries {
		b := v.data[e.from:e.to]
		if len(b) == 0 {
			return index{}, fmt.Errorf("token %d is empty", e.id)
		}
		if texts[e.id] != nil {
			return index{}, fmt.Errorf("id %d is given to %q and to %q", e.id, texts[e.id], b)
		}
		texts[e.id] = b
	}
	plain := make([]bool, n)
	for _, e := range v.entries {
		plain[e.id] = true
	}
	t.special = make([]bool, n)
	t.added = make(map[string]int32, len(v.added))
	for _, a := range v.added {
		// An added token may repeat an entry of the vocabulary, not another one.
		have := texts[a.id]
		if have != nil && string(have) != a.text {
			return index{}, fmt.Errorf("id %d is given to %q and to %q", a.id, have, a.text)
		}
		if _, ok := t.added[a.text]; ok {
			return index{}, fmt.Errorf("added token %.80q appears twice", a.text)
		}
		if len(have) == 1 {
			continue // some files declare "!" their padding; it is text all the same
		}
		texts[a.id] = []byte(a.text)
		t.added[a.text] = a.id
		t.special[a.id] = a.special || looksSpecial(a.text)
		if t.special[a.id] {
			plain[a.id] = false // no merge may end in it
		}
	}
	t.table = newTable(n, func(id int) []byte { return texts[id] })
	x := newIndex(&t.table, len(v.entries))
	for _, e := range v.entries {
		if !plain[e.id] {
			continue
		}
		if other := x.add(e.id); other >= 0 {
			return index{}, fmt.Errorf("token %q has ids %d and %d", t.Bytes(e.id), other, e.id)
		}
	}
	for b := range 256 {
		id, ok := x.find([]byte{byte(b)})
		if !ok {
			return index{}, fmt.Errorf("there is no token for byte %#02x, so not every text can be written", b)
		}
		t.byteID[b] = id
	}
	return x, nil
}

// mergeAdder enters merges in the order of their ranks.
type mergeAdder struct {
	t    *Tokenizer
	x    *index
	rank int32
}

// add takes the bytes of both parts, which stand one after the other.
func (a *mergeAdder) add(both []byte, cut int) error {
	left, ok1 := a.x.find(both[:cut])
	right, ok2 := a.x.find(both[cut:])
	id, ok3 := a.x.find(both)
	if !ok1 || !ok2 || !ok3 {
		return fmt.Errorf("merge %d (%.40q + %.40q) names a token that is not in the vocabulary", a.rank, both[:cut], both[cut:])
	}
	a.t.merges.add(pair{left, right}, merged{rank: a.rank, id: id})
	a.rank++
	return nil
}

// addPair is add for a merge written as "left right" in byte-level form.
func (a *mergeAdder) addPair(s, buf []byte) ([]byte, error) {
	cut, buf, ok := -1, buf[:0], true
	for i := range s {
		if s[i] != ' ' || i == 0 {
			continue
		}
		if buf, ok = appendByteLevel(buf, s[:i]); ok {
			cut = len(buf)
			buf, ok = appendByteLevel(buf, s[i+1:])
		}
		break
	}
	if cut < 0 && ok {
		return buf, fmt.Errorf("merge %d: %.80q has no two parts", a.rank, s)
	}
	if !ok {
		return buf, fmt.Errorf("merge %d: %.80q is not in byte-level form", a.rank, s)
	}
	return buf, a.add(buf, cut)
}

// mark finds a token that a file names by its text.
func (t *Tokenizer) mark(what, text string) (int32, error) {
	if text == "" {
		return -1, nil
	}
	id, ok := t.added[text]
	if !ok {
		return -1, fmt.Errorf("%s is %.80q, which is no added token", what, text)
	}
	return id, nil
}
