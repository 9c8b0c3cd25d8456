package tensor

import "bytes"

// Pointer says that a file is not the one that was asked for but a note of Git LFS
// where to find it: what a repository of models has when it was cloned without LFS.
func Pointer(b []byte) bool {
	return bytes.HasPrefix(b, []byte("version https://git-lfs.github.com/spec/"))
}

// Fetch is what to do about a Pointer.
const Fetch = "this is a pointer of Git LFS and not the file itself; run git lfs pull, or download the file"
