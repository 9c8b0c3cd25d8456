// Package checkpoint opens a model on disk, whatever its form: a GGUF file, a
// folder in Hugging Face's layout with one weight file or several, or such a
// folder inside the program. It says what the model is, what it takes in memory
// and how its tensors become the matrices of the forward pass, all before any
// weight is read.
//
// The invariant that matters: after Open, configuration, tensors and formats
// agree. Every tensor that the shape asks for is there with that shape and a
// readable type, and there is none that the shape has no use for; what does not
// fit is refused by name, with the cure, before memory is taken.
//
// Read next: Open in open.go, Plan in plan.go, Describe in describe.go.
package checkpoint
