package kv_test

import (
	"testing"

	"pgregory.net/rapid"

	"tokenrouter/runtime/kv"
)

// Lengths at the edge of a block (case D7).
func TestBlocks(t *testing.T) {
	for _, tc := range []struct{ tokens, want int }{{-1, 0}, {0, 0}, {1, 1}, {15, 1}, {16, 1}, {17, 2}, {32, 2}, {33, 3}} {
		if got := kv.Blocks(tc.tokens, 16); got != tc.want {
			t.Errorf("%d tokens in blocks of 16: %d, want %d", tc.tokens, got, tc.want)
		}
	}
	if got := kv.Blocks(1<<62, 1); got != 1<<62 {
		t.Errorf("no overflow: %d", got)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tc := range []struct{ tokens, block int }{{10, 0}, {10, -1}, {3, 4}, {0, 1}, {-5, 1}} {
		if _, err := kv.New(tc.tokens, tc.block); err == nil {
			t.Errorf("a pool of %d tokens in blocks of %d was made", tc.tokens, tc.block)
		}
	}
	p, err := kv.New(19, 4)
	if err != nil || p.Total() != 4 || p.Block() != 4 || p.Free() != 4 {
		t.Errorf("%+v %v", p, err)
	}
}

// Whatever is taken and given back in whatever order, nothing is lost or counted
// twice, and what does not fit changes nothing (INV-4, case C5).
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := rapid.IntRange(1, 8).Draw(t, "block")
		total := rapid.IntRange(1, 20).Draw(t, "total")
		p, err := kv.New(total*block+rapid.IntRange(0, block-1).Draw(t, "rest"), block)
		if err != nil {
			t.Fatal(err)
		}
		seqs := make([]kv.Seq, 4)
		length := make([]int, 4)
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			i := rapid.IntRange(0, 3).Draw(t, "seq")
			if rapid.IntRange(0, 3).Draw(t, "release") == 0 {
				if got, want := p.Release(&seqs[i]), kv.Blocks(length[i], block); got != want {
					t.Fatalf("released %d blocks of %d", got, want)
				}
				length[i] = 0
			} else {
				n := length[i] + rapid.IntRange(0, 3*block).Draw(t, "grow")
				fits := p.Need(seqs[i], n) <= p.Free()
				before := p
				if ok := p.Grow(&seqs[i], n); ok != fits {
					t.Fatalf("grow to %d: %v, want %v", n, ok, fits)
				} else if ok {
					length[i] = max(length[i], n)
				} else if p != before {
					t.Fatal("what did not fit changed the pool")
				}
			}
			sum := 0
			for j := range seqs {
				if !p.Holds(seqs[j], length[j]) || seqs[j].Blocks() != kv.Blocks(length[j], block) {
					t.Fatalf("%d tokens in %d blocks", length[j], seqs[j].Blocks())
				}
				sum += seqs[j].Blocks()
			}
			if p.Used() != sum || p.Free()+p.Used() != total || p.Free() < 0 {
				t.Fatalf("%d blocks held, %d used, %d free of %d", sum, p.Used(), p.Free(), total)
			}
		}
	})
}
