package collect

import (
	"tokenrouter/algos/head/dataset"
	"tokenrouter/algos/head/pair"
)

// walk is a problem under way: its text, and at most one rollout that its text
// waits for.
//
// What is to be known at a mismatch is whether the large model comes to the right
// answer from here with the small model's token, and with its own. The second is
// the large model's outcome from the text as it stands, which changes only where
// the text takes a token that is not the large model's: there it becomes the first.
// So one rollout a mismatch is enough but for the rare case in which it fails and
// nothing is known of the text yet.
type walk struct {
	problem int
	text    *pair.Text
	rows    *dataset.Rows
	over    bool

	value outcome // of the large model from the text as it stands
	other int32   // the large model's token at the row under way

	roll *pair.Text // the rollout under way
	asks question
}

type outcome uint8

const (
	unknown outcome = iota
	right
	wrong
)

// question is what a rollout is to tell.
type question uint8

const (
	ofSmall question = iota // from the text with the small model's token
	ofText                  // from the text
)

func (c *collector) begin(i int) *walk {
	return &walk{problem: i, text: pair.NewText(c.problems[i].Prompt), rows: c.empty()}
}

func (w *walk) free(p *pair.Pair) {
	p.Free(w.text)
	if w.roll != nil {
		p.Free(w.roll)
	}
}

// met takes the large model's token at the newest row.
func (c *collector) met(w *walk, other int32) {
	w.other = other
	r := w.rows
	token := r.Token[r.Len()-1]
	r.Other = append(r.Other, other)
	if token == other {
		r.Differ = append(r.Differ, 0)
		c.settle(w, 0)
		return
	}
	r.Differ = append(r.Differ, 1)
	if c.o.Label == dataset.Mismatch {
		c.settle(w, 1)
		return
	}
	c.rollOut(w, ofSmall)
}

// rollOut begins a rollout, which ends at once where its first token ends it.
func (c *collector) rollOut(w *walk, asks question) {
	w.roll, w.asks = c.p.Fork(w.text), asks
	token := w.other
	if asks == ofSmall {
		token = w.rows.Token[w.rows.Len()-1]
	}
	c.rolled(w, token)
}

// rolled takes the next token of a rollout.
func (c *collector) rolled(w *walk, token int32) {
	w.roll.Tokens = append(w.roll.Tokens, token)
	if !c.ended(w, w.roll) {
		return
	}
	got := wrong
	if c.problems[w.problem].Right(w.roll.Output()) {
		got = right
	}
	c.p.Free(w.roll)
	w.roll = nil
	switch {
	case w.asks == ofText:
		w.value = got
	case got == right:
		c.settle(w, 0)
		return
	}
	switch w.value {
	case unknown:
		c.rollOut(w, ofText)
	case right:
		c.settle(w, 1)
	default: // nothing helps this text any more
		w.rows.Cut(w.rows.Len() - 1)
		w.over = true
	}
}

func (c *collector) ended(w *walk, t *pair.Text) bool {
	out := t.Output()
	return len(out) > 0 && (c.p.Ends(out[len(out)-1]) || len(out) >= c.problems[w.problem].MaxTokens)
}

// settle labels the newest row and lets the text go on behind it.
func (c *collector) settle(w *walk, label uint8) {
	r := w.rows
	r.Labels = append(r.Labels, label)
	last := r.Len() - 1
	token := r.Token[last]
	large := false
	switch t := c.o.Texts[w.problem%len(c.o.Texts)]; t.Kind {
	case TextLarge:
		large = true
	case TextRepair:
		large = label == 1
	case TextEntropy:
		large = float64(r.Measure(last)[0]) >= t.Threshold
	}
	if large {
		token = w.other
	} else if token != w.other && c.o.Label == dataset.Outcome {
		w.value = right
		if label == 1 {
			w.over = true // the answer is lost: what follows can be no better
		}
	}
	w.text.Tokens = append(w.text.Tokens, token)
	w.over = w.over || c.ended(w, w.text)
}
