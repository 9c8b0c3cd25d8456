// Package tiny holds the four language models that come with the program, from
// 37 thousand to 3.7 million weights, trained for it on word problems with a
// chain of thought. They share one tokenizer, so any two of them can write one
// sequence in turns. MODEL_CARD.md says what they are and what they are not.
//
// The invariant that matters: every model reproduces the reference logits and
// greedy answers in testdata/reference, which an independent implementation
// computed from the same files.
//
// Read next: Load in tiny.go.
package tiny
