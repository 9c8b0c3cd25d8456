// Package format is the tape on disk: a header, then frames that each hold many
// records, compressed and checksummed.
//
// The invariant that matters: a frame is good as a whole or not at all, and
// everything before the first bad frame is exactly what was recorded. Lengths
// that come from the file are checked before memory is taken for them, and no
// bytes make a reader panic.
//
// Read layout.go for the bytes (docs/format/README.md draws them), encoder.go
// for how frames are made, scan.go for what is kept of a damaged file and
// reader.go for how records come back.
package format
