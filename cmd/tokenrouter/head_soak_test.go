//go:build soak

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docsHeads has the commands that made the shipped heads.
const docsHeads = "../../docs/heads.md"

// shippedCommands are the lines of docs/heads.md that make shipped heads.
func shippedCommands(t *testing.T) (out [][]string) {
	t.Helper()
	text, err := os.ReadFile(docsHeads)
	if err != nil {
		t.Fatal(err)
	}
	_, part, ok := strings.Cut(string(text), "## The shipped heads")
	if !ok {
		t.Fatal("docs/heads.md has no section of the shipped heads")
	}
	for _, m := range regexp.MustCompile(`(?m)^tokenrouter (head (?:collect|train|calibrate) .*)$`).FindAllStringSubmatch(part, -1) {
		out = append(out, strings.Fields(m[1]))
	}
	return out
}

// The shipped heads are what the commands in the documentation make, byte for byte.
func TestShippedHeadsAreMadeAnew(t *testing.T) {
	commands := shippedCommands(t)
	shipped, err := filepath.Abs("../../algos/head/shipped")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	made := 0
	for _, args := range commands {
		if code := realMain(args); code != 0 {
			t.Fatalf("%v ends with code %d", args, code)
		}
	}
	files, err := filepath.Glob("heads/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if filepath.Ext(f) == ".csv" {
			continue
		}
		got, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(shipped, filepath.Base(f)))
		if err != nil {
			t.Fatal(err)
		}
		made++
		if !bytes.Equal(got, want) {
			t.Errorf("%s is another file than the shipped one", f)
		}
	}
	there, err := filepath.Glob(filepath.Join(shipped, "*.safetensors"))
	if err != nil || made != 2*len(there) || made == 0 {
		t.Errorf("%d files were made, %d heads are shipped", made, len(there))
	}
}

// A threshold that was chosen on some problems gives the wanted share on others,
// within half a point or a tenth.
func TestCalibrationHolds(t *testing.T) {
	for _, score := range []string{"entropy", "top1", "outcome", "r2r", "citer"} {
		for _, target := range []float64{0.02, 0.05, 0.1, 0.2, 0.35, 0.5} {
			out := captured(t, "head", "calibrate", score, "--share", fmt.Sprint(target), "--seed", "3", "--json")
			var got calibrated
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if !got.Hit || got.Verified == nil || len(got.Tied) > 0 {
				t.Errorf("%s at %v: %s", score, target, out)
			}
			t.Logf("%s at %v: threshold %v, chosen %.4f, others %.4f (%.4f to %.4f), %d tries, right %d of %d", score, target, got.Threshold,
				got.Chosen.Share, got.Verified.Share, got.Verified.Low, got.Verified.High, len(got.Tries), got.Verified.Right, got.Verified.Problems)
		}
	}
}

// captured runs a command and gives what it prints. That it misses a target shows
// in its answer.
func captured(t *testing.T, args ...string) []byte {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = stdout }()
	realMain(args)
	out, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return out
}
