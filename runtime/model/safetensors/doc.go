// Package safetensors reads and writes the safetensors file format: eight bytes
// with the little-endian length of a JSON header, the header (name -> dtype,
// shape, data_offsets), then the tensors' bytes back to back; and the weights of
// a model in Hugging Face's layout, in one such file or in several with an index.
//
// The invariant that matters: nothing in a file is believed before it is held
// against the file's size. The header is bounded, every shape is multiplied with
// overflow checks, ranges lie inside the file, do not overlap and leave no hole;
// tensors are views, so no memory is taken for them. A damaged file gives an
// error with its offset, and an index never leads out of its folder.
//
// Read next: Parse in parse.go, Folder in folder.go, WriteDir in write.go.
package safetensors
