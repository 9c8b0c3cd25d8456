// Package tensor is what the readers of weight files have in common: the number
// formats of the field with the layout of their blocks, a tensor as a view of a
// file's bytes, and the mapping of a file into memory.
//
// The invariant that matters: a Tensor's Data has exactly the bytes that its
// Type and Shape ask for, so that code which reads it needs no check of its own.
// A reader proves it once, before it gives the tensor away.
//
// Read next: Type in type.go, Store in tensor.go, Dequantize in dequant.go; then
// packages gguf and safetensors.
package tensor
