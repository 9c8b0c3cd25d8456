package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"

	"tokenrouter/runtime/model/tokenizer/template"
)

// Bounds of the word cache: words kept, and the longest one worth keeping.
const (
	cacheWords   = 1 << 14
	cacheWordLen = 64
)

// Tokenizer is immutable but for its word cache and safe for concurrent use.
type Tokenizer struct {
	table   table
	byteID  [256]int32
	merges  mergeTable
	whole   *index           // where a word that is a token is taken as it is
	added   map[string]int32 // all added tokens
	special []bool           // by id: added tokens that are never text
	finder  finder           // of added tokens in a rendered template
	rule    *rule
	nfc     bool
	bos     int32 // -1: none
	eos     int32 // -1: none
	addBOS  bool
	hash    string

	source  string // of the chat template
	chat    *template.Template
	chatErr error

	mu    sync.RWMutex
	cache map[string][]int32
}

func newTokenizer(r *rule, nfc bool) *Tokenizer {
	return &Tokenizer{rule: r, nfc: nfc, bos: -1, eos: -1, cache: map[string][]int32{}, merges: newMergeTable()}
}

// finish computes what follows from the tables. The template's error, if any,
// is left for EncodeChat: plain prompts go without it.
func (t *Tokenizer) finish(template string) {
	t.finder = newFinder(t.added)
	t.hash = t.computeHash()
	_ = t.SetTemplate(template)
}

// Encode turns text into ids. The text is normalised to NFC first where the
// checkpoint asks for it; bytes that are not UTF-8 are kept as they are. It
// adds no BOS and never yields a special token.
func (t *Tokenizer) Encode(text string) []int32 {
	return t.encode(nil, text)
}

// Prompt is Encode of a plain prompt, after one BOS where the model's sequences
// begin with it.
func (t *Tokenizer) Prompt(text string) []int32 {
	var out []int32
	if t.addBOS {
		out = append(out, t.bos)
	}
	return t.encode(out, text)
}

func (t *Tokenizer) encode(out []int32, text string) []int32 {
	if t.nfc {
		text = nfc(text)
	}
	for text != "" {
		n := t.rule.split(text)
		out = t.word(out, text[:n])
		text = text[n:]
	}
	return out
}

// word appends one word's tokens, from the cache where possible.
func (t *Tokenizer) word(out []int32, w string) []int32 {
	if len(w) == 1 {
		return append(out, t.byteID[w[0]])
	}
	if len(w) > cacheWordLen {
		return t.tokens(out, w)
	}
	t.mu.RLock()
	ids, ok := t.cache[w]
	t.mu.RUnlock()
	if ok {
		return append(out, ids...)
	}
	from := len(out)
	out = t.tokens(out, w)
	ids = append([]int32(nil), out[from:]...)
	t.mu.Lock()
	if len(t.cache) >= cacheWords {
		clear(t.cache)
	}
	t.cache[string([]byte(w))] = ids // a copy, so that the text can be freed
	t.mu.Unlock()
	return out
}

// tokens appends one word's tokens.
func (t *Tokenizer) tokens(out []int32, w string) []int32 {
	if t.whole != nil {
		if id, ok := t.whole.findString(w); ok {
			return append(out, id)
		}
	}
	return t.merge(out, w)
}

// Bytes is the raw text of one token, not to be changed; pieces of a UTF-8
// character are possible. An unused id, or one out of range, gives nil.
func (t *Tokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= t.table.size() {
		return nil
	}
	return t.table.bytes(id)
}

// Decode joins the bytes of ids, those of special tokens too.
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

// BOS is the token that begins a sequence, if the checkpoint names one.
func (t *Tokenizer) BOS() (int32, bool) { return t.bos, t.bos >= 0 }

// EOS is the end token that the tokenizer's files name; a checkpoint may have
// more of them in its generation settings.
func (t *Tokenizer) EOS() (int32, bool) { return t.eos, t.eos >= 0 }

// Size is one more than the largest id in use. A checkpoint may have more rows.
func (t *Tokenizer) Size() int { return t.table.size() }

// Hash is the SHA-256 in hex over the table id -> bytes. Two models may write
// one sequence in turns only if their hashes are equal.
func (t *Tokenizer) Hash() string { return t.hash }

func (t *Tokenizer) computeHash() string {
	h := sha256.New()
	buf := make([]byte, 0, 1<<16)
	for id, special := range t.special {
		b := t.Bytes(int32(id))
		buf = binary.LittleEndian.AppendUint32(buf, uint32(len(b)))
		if special {
			buf = append(buf, 1)
		} else {
			buf = append(buf, 0)
		}
		if buf = append(buf, b...); len(buf) > 1<<15 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	h.Write(buf)
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
			return id, fmt.Sprintf("token %d is %s in the first and %s in the second", id, a, b)
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
