package dataset

import (
	"fmt"
	"slices"

	"tokenrouter/algos/head"
)

// Label is what a row is labelled by.
type Label string

// The labels. Each is 1 where the large model should write the position.
const (
	// Mismatch: the most likely tokens of the two models differ (R2R without a
	// judge, arXiv 2505.21600).
	Mismatch Label = "mismatch"
	// Outcome: with the small model's token the large one comes to a wrong answer,
	// with its own to the right one (cf. CITER, arXiv 2502.01976, section 3.3).
	Outcome Label = "outcome"
	// Query: one row a problem, at its first token: the small model alone comes to a
	// wrong answer, the large one alone to the right one (cf. RouteLLM, arXiv
	// 2406.18665).
	Query Label = "query"
)

// Labels lists them.
func Labels() []Label { return []Label{Mismatch, Outcome, Query} }

// Signals is the number of signals of a row, those of the feature of that name: entropy
// in nats, the two largest probabilities, logsumexp.
const Signals = head.Signals

// Meta says what rows are of. It is part of the file, in this form.
type Meta struct {
	Format   int               `json:"format"`
	Models   map[string]string `json:"models"` // name by role
	Hashes   map[string]string `json:"hashes"` // of the weights, by role
	Hidden   int               `json:"hidden"` // width of the small model
	Vocab    int               `json:"vocab"`  // rows of its logits
	TopK     int               `json:"top_logits"`
	Embedded bool              `json:"embedding"` // rows have the embedding of the candidate
	Label    Label             `json:"label"`     // of what rows there are, and the default to train on
	Workload string            `json:"workload"`
	Seed     uint64            `json:"seed"`
	First    int               `json:"first"` // number of the first problem of the stream
	Problems int               `json:"problems"`
	Text     string            `json:"text"` // who wrote the texts
	Tokens   int               `json:"max_tokens"`
}

// Rows is a set of rows, column by column.
type Rows struct {
	Meta

	Problem []int32
	Pos     []int32 // absolute
	Token   []int32 // the small model's candidate
	Other   []int32 // the large model's token at the same prefix
	Labels  []uint8 // by Meta.Label
	Differ  []uint8 // 1 where Token and Other are not the same

	States     []float32 // hidden states of the small model, Hidden values a row
	Embeddings []float32 // of Token in the small model, Hidden values a row, or none
	Logits     []float32 // the TopK largest raw logits, falling
	Measures   []float32 // Signals values a row
}

// Len is the number of rows.
func (r *Rows) Len() int { return len(r.Problem) }

// Number is the number of row i's problem in the stream of its seed, whichever part
// of the stream the rows are of.
func (r *Rows) Number(i int) int { return r.First + int(r.Problem[i]) }

// State is the hidden state of row i.
func (r *Rows) State(i int) []float32 { return r.States[i*r.Hidden:][:r.Hidden] }

// Embedding is the embedding of the candidate of row i, nil without them.
func (r *Rows) Embedding(i int) []float32 {
	if !r.Embedded {
		return nil
	}
	return r.Embeddings[i*r.Hidden:][:r.Hidden]
}

// Top is the largest logits of row i.
func (r *Rows) Top(i int) []float32 { return r.Logits[i*r.TopK:][:r.TopK] }

// Measure is the signals of row i.
func (r *Rows) Measure(i int) []float32 { return r.Measures[i*Signals:][:Signals] }

// Input is what a head reads of row i. It refers to the rows.
func (r *Rows) Input(i int, logits int) head.Input {
	return head.Input{Hidden: r.State(i), Embedding: r.Embedding(i), Logits: r.Top(i)[:logits], Signals: r.Measure(i)}
}

// Label gives the label of row i of a kind that the rows have: that of their Meta,
// and Mismatch.
func (r *Rows) Label(l Label) ([]uint8, error) {
	switch {
	case l == r.Meta.Label:
		return r.Labels, nil
	case l == Mismatch && r.Meta.Label != Query:
		return r.Differ, nil
	}
	return nil, fmt.Errorf("the rows have no labels %q: they were collected with --labels %s", l, r.Meta.Label)
}

// Append adds the rows of another set of the same shape.
func (r *Rows) Append(o *Rows) {
	r.Problem, r.Pos = append(r.Problem, o.Problem...), append(r.Pos, o.Pos...)
	r.Token, r.Other = append(r.Token, o.Token...), append(r.Other, o.Other...)
	r.Labels, r.Differ = append(r.Labels, o.Labels...), append(r.Differ, o.Differ...)
	r.States, r.Embeddings = append(r.States, o.States...), append(r.Embeddings, o.Embeddings...)
	r.Logits, r.Measures = append(r.Logits, o.Logits...), append(r.Measures, o.Measures...)
}

// Cut keeps the first n rows.
func (r *Rows) Cut(n int) {
	r.Problem, r.Pos, r.Token, r.Other = r.Problem[:n], r.Pos[:n], r.Token[:n], r.Other[:n]
	r.Labels, r.Differ = r.Labels[:n], r.Differ[:n]
	r.States, r.Logits, r.Measures = r.States[:n*r.Hidden], r.Logits[:n*r.TopK], r.Measures[:n*Signals]
	if r.Embedded {
		r.Embeddings = r.Embeddings[:n*r.Hidden]
	}
}

// Positives is the number of rows that a label says 1 of.
func Positives(labels []uint8) (n int) {
	for _, l := range labels {
		n += int(l)
	}
	return n
}

// Groups gives, for each row, the number of its problem among those that have rows,
// and how many those are.
func (r *Rows) Groups() (of []int32, n int) {
	of = make([]int32, r.Len())
	for i := range of {
		if i > 0 && r.Problem[i] != r.Problem[i-1] {
			n++
		}
		of[i] = int32(n)
	}
	if r.Len() > 0 {
		n++
	}
	return of, n
}

// check holds the invariant.
func (r *Rows) check() error {
	if !slices.IsSorted(r.Problem) {
		return fmt.Errorf("the rows of its problems do not lie together")
	}
	for _, c := range [][]uint8{r.Labels, r.Differ} {
		for i, l := range c {
			if l > 1 {
				return fmt.Errorf("row %d is labelled %d; labels are 0 and 1", i, l)
			}
		}
	}
	return nil
}
