package model_test

import (
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/synth"
)

// Loading with the file in the page cache: packing, the sum of the file and the
// tokenizer.
func BenchmarkOpen(b *testing.B) {
	s, err := synth.Find("30m")
	if err != nil {
		b.Fatal(err)
	}
	for _, format := range []string{"q8_0", "q4_0", "bf16", "f32", "q4_k_m"} {
		b.Run(format, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "30m.gguf")
			if err := synth.Write(path, s, synth.Options{Format: format, Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
				b.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				m, err := model.Open(path, model.Options{})
				if err != nil {
					b.Fatal(err)
				}
				m.Close()
			}
		})
	}
}
