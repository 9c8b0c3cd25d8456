package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// Bounds of the word cache: words kept, and the longest one worth keeping.
const (
	cacheWords   = 1 << 14
	cacheWordLen = 64
)

// Tokenizer is immutable but for its word cache and safe for concurrent use.
type Tokenizer struct {
	bytes   [][]byte // id -> bytes; nil where the id is unused
	byteID  [256]int32
	merges  map[pair]merged
	added   map[string]int32 // all added tokens
	special []bool           // by id: added tokens that are never text
	visible []string         // added tokens that are text, like <think>
	nfc     bool
	chat    bool // the template is ChatML
	hash    string

	mu    sync.RWMutex
	cache map[string][]int32
}

// Encode turns text into ids. The text is normalised to NFC first; bytes that
// are not UTF-8 are kept as they are. It never yields an added token.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.encode(nil, text)
}

func (t *Tokenizer) encode(out []int32, text string) []int32 {
	if t.nfc {
		text = norm.NFC.String(text)
	}
	for text != "" {
		n := split(text)
		out = t.word(out, text[:n])
		text = text[n:]
	}
	return out
}

// word appends one word's tokens, from the cache where possible.
func (t *Tokenizer) word(out []int32, w string) []int32 {
	if len(w) == 1 || len(w) > cacheWordLen {
		return t.merge(out, w)
	}
	t.mu.RLock()
	ids, ok := t.cache[w]
	t.mu.RUnlock()
	if ok {
		return append(out, ids...)
	}
	ids = t.merge(nil, w)
	t.mu.Lock()
	if len(t.cache) >= cacheWords {
		clear(t.cache)
	}
	t.cache[string([]byte(w))] = ids // a copy, so that the text can be freed
	t.mu.Unlock()
	return append(out, ids...)
}

// Bytes is the raw text of one token, not to be changed; pieces of a UTF-8
// character are possible. An unused id, or one out of range, gives nil.
func (t *Tokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.bytes) {
		return nil
	}
	return t.bytes[id]
}

// Decode joins the bytes of ids.
func (t *Tokenizer) Decode(ids []int32) string {
	var b []byte
	for _, id := range ids {
		b = append(b, t.Bytes(id)...)
	}
	return string(b)
}

// IsSpecial reports whether id is a control token that is not part of the text
// shown to a user, such as <|im_end|>. <think> is not: it is text.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.special) && t.special[id]
}

// ID finds an added token by its text, such as "<|im_end|>" or "<think>".
func (t *Tokenizer) ID(text string) (int32, bool) {
	id, ok := t.added[text]
	return id, ok
}

// Size is one more than the largest id.
func (t *Tokenizer) Size() int { return len(t.bytes) }

// Hash is the SHA-256 in hex over the table id -> bytes. Two models may write
// one sequence in turns only if their hashes are equal.
func (t *Tokenizer) Hash() string { return t.hash }

func (t *Tokenizer) computeHash() string {
	h := sha256.New()
	var n [5]byte
	for id, b := range t.bytes {
		binary.LittleEndian.PutUint32(n[:], uint32(len(b)))
		n[4] = 0
		if t.special[id] {
			n[4] = 1
		}
		h.Write(n[:])
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Diff finds the first id that means something else in other and describes the
// difference; id is -1 if there is none.
func (t *Tokenizer) Diff(other *Tokenizer) (id int32, desc string) {
	n := max(t.Size(), other.Size())
	for i := range n {
		id := int32(i)
		a, b := t.describe(id), other.describe(id)
		if a != b {
			return id, fmt.Sprintf("token %d is %s here and %s there", id, a, b)
		}
	}
	return -1, ""
}

func (t *Tokenizer) describe(id int32) string {
	b := t.Bytes(id)
	switch {
	case b == nil:
		return "unused"
	case t.IsSpecial(id):
		return fmt.Sprintf("the special token %q", b)
	}
	return fmt.Sprintf("%q", b)
}
