// Package tiny holds the language models that come with the program, trained for
// it on problems with a chain of thought: the tiny family, from 37 thousand to 3.7
// million weights, on one kind of problem, and the mix family on all families of
// runtime/workload. All share one tokenizer, so any two of them can write one
// sequence in turns. MODEL_CARD.md says what they are and what they are not;
// cmd/tinytrain made the mix family.
//
// The invariant that matters: every tiny model reproduces the reference logits
// and greedy answers in testdata/reference, which an independent implementation
// computed from the same files; every mix model answers as many problems of each
// family as the card says.
//
// Read next: Load in tiny.go.
package tiny
