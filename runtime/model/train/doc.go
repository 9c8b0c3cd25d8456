// Package train trains small models of the Qwen3 architecture on the CPU: forward
// pass with what it saves, backward pass by hand, Muon for hidden matrices and
// Adam for embedding and norms, in float32. It is how the embedded families of
// runtime/model/tiny were made; cmd/tinytrain is its program.
//
// The invariant that matters: weights are a function of the configuration and the
// examples. Each worker takes the next examples in turn, gradients are summed in
// the order of the workers and no sum depends on time, so the same seed with the
// same number of workers gives the same bytes, and so does a run that was saved
// and resumed. AVX2 and AVX-512 agree; Go without assembly and other processors
// may differ in the last bits.
//
// A batch is sequences back to back, without padding: only attention knows where
// one ends. Gradients are held against central differences of a loss in plain
// float64 (oracle_test.go).
//
// Read pass.go for the course of both passes, attend.go for attention, vector.go
// for norms, activation and loss, optimise.go for the optimisers, trainer.go for a
// step, checkpoint.go for what is written.
package train
