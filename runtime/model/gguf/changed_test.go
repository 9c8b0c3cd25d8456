package gguf

import "testing"

// A mapped file may be changed by another program after it was parsed: what is
// copied from it then is held against the bounds again.
func TestStringsOfAChangedFile(t *testing.T) {
	for _, at := range []int{0, 1, 7, 8} { // the first length, and that of the second string
		b := sample(t, 0)
		f, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		v := f.meta["strings"]
		v.data[at] = 0xff
		if got, ok := f.Strings("strings"); ok {
			t.Errorf("byte %d: %q", at, got)
		}
	}
}
