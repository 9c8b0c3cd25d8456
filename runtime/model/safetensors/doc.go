// Package safetensors reads the safetensors file format: eight bytes with the
// little-endian length of a JSON header, the header (name -> dtype, shape,
// data_offsets), then the tensors' bytes back to back.
//
// The invariant that matters: nothing in a file is believed before it is
// checked against the file's size. The header is bounded, every shape is
// multiplied with overflow checks, ranges lie inside the file, do not overlap
// and leave no hole; only then is memory for values allocated, and never more
// than the file can fill. A damaged file gives an error with its offset.
//
// Read next: Open in open.go, then ReadFloat32 in read.go.
package safetensors
