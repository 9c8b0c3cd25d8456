// Package gguf reads and writes GGUF files, versions 2 and 3, little-endian: a
// header of counts, metadata (key, kind, value), a table of tensors, padding to
// the alignment, then the tensors' bytes, each at a multiple of the alignment.
//
// The invariant that matters: nothing in a file is believed before it is held
// against the file's size and the limits below, and nothing is allocated by a
// count that the file merely claims. After Parse every tensor lies inside the
// file and on no other one, its bytes are those of its shape and type, and every
// metadata value can be read without a further check. A damaged file gives an
// Error with the offset and the reason.
//
// Read next: Open in file.go, then parse.go; meta.go has the getters, write.go
// the writer.
package gguf
