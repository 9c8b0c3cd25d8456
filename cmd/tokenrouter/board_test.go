package main

import (
	"errors"
	"testing"
)

// The screen and who shows it close the same run; what went wrong is said once.
func TestJoinOnce(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for _, c := range []struct {
		err, more error
		want      string
	}{{nil, nil, "<nil>"}, {a, nil, "a"}, {nil, b, "b"}, {errors.Join(a, b), b, "a\nb"}, {a, b, "a\nb"}} {
		got := "<nil>"
		if err := joinOnce(c.err, c.more); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v and %v are %q, want %q", c.err, c.more, got, c.want)
		}
	}
}

func TestWithoutComment(t *testing.T) {
	for src, want := range map[string]string{
		`return STAY`: `return STAY`, `return to("large"), DROP  -- same position`: `return to("large"), DROP`,
		`if s == "--" then return HOME end -- "x"`: `if s == "--" then return HOME end`, `-- all`: ``, `x = '--'`: `x = '--'`,
	} {
		if got := withoutComment(src); got != want {
			t.Errorf("%q becomes %q, want %q", src, got, want)
		}
	}
}

// case J6, J16: without a terminal, or on one that has no screen, the board is
// printed once in place of a hang or of escape sequences as text.
func TestNoScreen(t *testing.T) {
	for _, c := range []struct {
		terminal bool
		kind     string
		shown    bool
	}{{true, "xterm-256color", true}, {true, "", true}, {true, "dumb", false}, {false, "xterm-256color", false}, {false, "dumb", false}} {
		if why := noScreen(c.terminal, c.kind); (why == "") != c.shown {
			t.Errorf("terminal %v of type %q: %q", c.terminal, c.kind, why)
		}
	}
}
