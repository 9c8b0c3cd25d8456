package cpu

import (
	"runtime"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		best   Level
		wanted string
		chosen bool
		want   Level
		err    string
	}{
		{AVX512, "", false, AVX512, ""},
		{AVX2, "", true, AVX2, ""},
		{AVX512, "go", true, Go, ""},
		{AVX512, "avx2", true, AVX2, ""},
		{AVX512, "avx512", true, AVX512, ""},
		{AVX2, "avx512", true, AVX2, "kernels up to avx2"},
		{Go, "avx2", true, Go, "kernels up to go"},
		{AVX2, "sse", true, AVX2, `TOKENROUTER_KERNELS="sse" is no level`},
		{AVX2, "AVX2", true, AVX2, "no level of kernels"},
	} {
		got, err := choose(c.best, c.wanted, c.chosen)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("choose(%v, %q, %v) = %v, %v; want %v, %q", c.best, c.wanted, c.chosen, got, err, c.want, c.err)
		}
	}
}

func TestForce(t *testing.T) {
	before := Current()
	for l := Go; l <= Best(); l++ {
		restore := Force(l)
		if Current() != l {
			t.Errorf("Force(%v) gives %v", l, Current())
		}
		restore()
		if Current() != before {
			t.Errorf("after Force(%v) the level is %v, was %v", l, Current(), before)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a level above Best was forced")
		}
	}()
	Force(Best() + 1)
}

func TestOtherMachines(t *testing.T) {
	if runtime.GOARCH != "amd64" && Best() != Go {
		t.Errorf("%s runs kernels of level %v", runtime.GOARCH, Best())
	}
	if got := Level(7).String(); got != "Level(7)" {
		t.Error(got)
	}
}
