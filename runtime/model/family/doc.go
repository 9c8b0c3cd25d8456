// Package family is what the supported architectures have in common and where
// they differ: the shape of a model, its rotary positions, and how its tensors
// are called in Hugging Face's and in GGUF's files. Each architecture is one
// small file of facts; they all run through one forward pass.
//
// The invariant that matters: a Config that comes out of here is one the forward
// pass can run. Sizes are within limits that keep every product far from
// overflow, and what would change the arithmetic without being implemented
// (experts, sliding windows, other rotary scalings) is refused by name. Nothing
// is guessed: a key that a family needs and the file lacks is an error.
//
// Read next: Config in config.go, qwen3.go for what a family is, Weights in
// weights.go.
package family
