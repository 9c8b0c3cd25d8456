package text

import (
	"fmt"
	"unicode/utf8"
)

// matcher follows one stop string through a stream of bytes with the failure
// links of Knuth, Morris and Pratt: n is the length of the longest prefix of
// the stop string that ends the stream so far.
type matcher struct {
	stop string
	fail []int // fail[i] = longest proper border of stop[:i+1]
	n    int
}

func newMatcher(stop string) (matcher, error) {
	if stop == "" {
		return matcher{}, fmt.Errorf("a stop string is empty; leave it out instead")
	}
	if !utf8.ValidString(stop) {
		return matcher{}, fmt.Errorf("stop string %q is not valid UTF-8; it could never match", stop)
	}
	fail := make([]int, len(stop))
	for i, k := 1, 0; i < len(stop); i++ {
		for k > 0 && stop[i] != stop[k] {
			k = fail[k-1]
		}
		if stop[i] == stop[k] {
			k++
		}
		fail[i] = k
	}
	return matcher{stop: stop, fail: fail}, nil
}

// feed takes one byte and reports whether the stop string is now complete.
func (m *matcher) feed(b byte) bool {
	for m.n > 0 && m.stop[m.n] != b {
		m.n = m.fail[m.n-1]
	}
	if m.stop[m.n] == b {
		m.n++
	}
	return m.n == len(m.stop)
}
