//go:build soak && linux

package model_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/synth"
)

// A model of the size of Qwen3-0.6B never has more than 1.15 times its file in
// memory while it loads (VmHWM of a process that does nothing else).
func TestResident(t *testing.T) {
	const key = "TOKENROUTER_TEST_LOAD"
	if path := os.Getenv(key); path != "" {
		m, err := model.Open(path, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s\n", status[bytes.Index(status, []byte("VmHWM")):])
		m.Close()
		return
	}
	s, err := synth.Find("qwen3-0.6b")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := synth.Write(path, s, synth.Options{Format: "q8_0", Tokenizer: os.DirFS("tiny/tokenizer")}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestResident$")
	cmd.Env = append(os.Environ(), key+"="+path)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	if _, err := fmt.Sscanf(string(out), "VmHWM: %d kB", &kib); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	ratio := float64(kib<<10) / float64(info.Size())
	t.Logf("at most %d MiB were resident, %.3f times the file", kib>>10, ratio)
	if ratio > 1.15 {
		t.Errorf("%.3f times the file's size was resident", ratio)
	}
}
