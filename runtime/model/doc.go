// Package model is what a language model is: its configuration, its weights,
// its tokenizer and the forward pass over a pool of KV blocks. Supported are
// the families of package family (Qwen3, Qwen2, Llama), from the files that
// package checkpoint opens.
//
// The invariant that matters: the logits of a token depend on the tokens
// before it and on the weights, bitwise, and on nothing else: not on the other
// rows of a step, not on how a prompt was cut into steps, not on the number of
// cores, not on whether its beginning was computed for another sequence, not on
// what a block held before it was overwritten (case G1). A Model never changes
// after it was loaded and is safe for concurrent use; a Workspace and a Pool
// belong to one goroutine at a time.
//
// Read next: Open in open.go and load in load.go, Forward in forward.go, Pool in
// kv.go; package tiny has the models that come with the program.
package model
