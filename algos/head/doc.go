// Package head evaluates trained heads: small networks that read what a model
// knows at one decode step (hidden state, embedding of the candidate, largest
// logits, signals) and give one probability, which routers see as r.score(name).
//
// The kinds are those of the papers, at any width: linear (Co-LLM's row of the LM
// head, arXiv 2403.03870), mlp, citer (arXiv 2502.01976) and r2r (arXiv
// 2505.21600). Published weights load once they are safetensors with a manifest
// beside them; docs/heads.md lists names and shapes.
//
// The invariant that matters: a score depends on the head and its input alone, bit
// for bit, whatever was scored before and on which machine; and a head is never
// used with a model that it was not made for.
//
// Read spec.go for what a head is made of, manifest.go for what is told about it,
// net.go for the arithmetic, load.go for the files, library.go and scorer.go for
// how a router gets one.
package head
