package tokenizer

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive joins the pair of lowest rank, leftmost first, by scanning.
func naive(t *Tokenizer, word string) []int32 {
	var ids []int32
	for i := range len(word) {
		ids = append(ids, t.byteID[word[i]])
	}
	for {
		at, best := -1, merged{}
		for i := 0; i+1 < len(ids); i++ {
			if m, ok := t.merges.find(pair{ids[i], ids[i+1]}); ok && (at < 0 || m.rank < best.rank) {
				at, best = i, m
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, best.id)
	}
}

func TestMergeOracle(t *testing.T) {
	tok := load(t)
	pieces := []string{" ", "a", "n", "an", "s", "e", "es", "d", "doubles", " the", " pile", "iv", "ives", "\n", ".", ".\n", "ss", "ee"}
	rapid.Check(t, func(t *rapid.T) {
		w := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 40).Draw(t, "pieces"), "")
		if got, want := tok.merge(nil, w), naive(tok, w); !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", w, got, want)
		}
	})
}

// Of equal pairs the leftmost is joined first.
func TestMergeLeftmost(t *testing.T) {
	raw, cfg := files(t)
	raw = bytes.Replace(raw, []byte("\"\u0120stamps\""), []byte(`"aa"`), 1)
	raw = regexp.MustCompile(`(?s)"merges": \[.*?\]\s*\],`).ReplaceAll(raw, []byte(`"merges": ["a a"],`))
	tok, err := Load(raw, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range tok.Encode("aaaaaaa") {
		got = append(got, string(tok.Bytes(id)))
	}
	if want := []string{"aa", "aa", "aa", "a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The table grows with the merges and keeps the first of two for one pair.
func TestMergeTable(t *testing.T) {
	const n = 5000
	table := newMergeTable()
	for i := range int32(n) {
		table.add(pair{i % 70, i / 70}, merged{rank: i, id: n - i})
		table.add(pair{i % 70, i / 70}, merged{rank: n + i})
	}
	for i := range int32(n) {
		if m, ok := table.find(pair{i % 70, i / 70}); !ok || m != (merged{rank: i, id: n - i}) {
			t.Fatalf("pair %d: %+v, %v", i, m, ok)
		}
	}
	if _, ok := table.find(pair{70, 0}); ok || table.n != n {
		t.Errorf("%d entries, want %d; a pair that was not added is there: %v", table.n, n, ok)
	}
}

// BenchmarkLongWord shows the time for a byte of a word without a break.
func BenchmarkLongWord(b *testing.B) {
	tok := load(b)
	for _, size := range []int{1 << 10, 1 << 14, 1 << 18} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			word := strings.Repeat("doubles", size/7)
			for b.Loop() {
				tok.Encode(word)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(word)), "ns/byte")
		})
	}
}
