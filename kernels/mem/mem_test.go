package mem

import (
	"os"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestBlocksKeepWhatIsWritten takes and frees blocks in any order: each is
// zero at first, starts on a page and keeps its bytes whatever happens to the
// others.
func TestBlocksKeepWhatIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type filled struct {
			b    []byte
			mark byte
		}
		var all []filled
		sizes := rapid.OneOf(rapid.IntRange(1, 9000), rapid.SampledFrom([]int{1 << 20, 3<<20 + 5, 5 << 20, 17 << 20, 63 << 20}))
		drop := func(i int) {
			f := all[i]
			for _, at := range []int{0, len(f.b) / 2, len(f.b) - 1} {
				if f.b[at] != f.mark {
					t.Fatalf("byte %d of %d reads %d, want %d", at, len(f.b), f.b[at], f.mark)
				}
			}
			if err := Free(f.b); err != nil {
				t.Fatal(err)
			}
			all = append(all[:i], all[i+1:]...)
		}
		for mark := range rapid.IntRange(1, 12).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "free") {
				drop(rapid.IntRange(0, len(all)-1).Draw(t, "which"))
				continue
			}
			n := sizes.Draw(t, "size")
			b, err := Alloc(n)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) != n || uintptr(unsafe.Pointer(&b[0]))%uintptr(os.Getpagesize()) != 0 {
				t.Fatalf("%d bytes at %p, want %d at a page", len(b), &b[0], n)
			}
			for _, at := range []int{0, n / 2, n - 1} {
				if b[at] != 0 {
					t.Fatalf("byte %d of a new block of %d reads %d", at, n, b[at])
				}
			}
			for _, at := range []int{0, n / 2, n - 1} {
				b[at] = byte(mark + 1)
			}
			all = append(all, filled{b, byte(mark + 1)})
		}
		for len(all) > 0 {
			drop(0)
		}
	})
}

func TestNothingAskedFor(t *testing.T) {
	b, err := Alloc(0)
	if len(b) != 0 || err != nil {
		t.Errorf("Alloc(0) gives %d bytes, %v", len(b), err)
	}
	if err := Free(b); err != nil {
		t.Errorf("freeing nothing: %v", err)
	}
	for _, n := range []int{-1, 1<<46 + 1} {
		if _, err := Alloc(n); err == nil {
			t.Errorf("Alloc(%d) succeeds", n)
		}
	}
}

func TestViews(t *testing.T) {
	b, err := Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Free(b); err != nil {
			t.Error(err)
		}
	}()
	f, u := Float32s(b), Uint16s(b)
	f[3], u[1] = 1, 0xABCD
	if len(f) != 16 || len(u) != 32 || u[7] != 0x3F80 || f[0] == 0 {
		t.Errorf("%d float32s, %d uint16s of 64 bytes; u[7] = %#x", len(f), len(u), u[7])
	}
	if Float32s(nil) != nil {
		t.Error("a view of nothing is something")
	}
	for name, bad := range map[string][]byte{"length": b[:6], "place": b[1:5]} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("wrong %s: no panic", name)
				}
			}()
			Float32s(bad)
		}()
	}
}
