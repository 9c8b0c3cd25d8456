package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/runtime/model/checkpoint"
)

// A folder that holds anything is searched in bounds, and the list says where it
// is not whole.
func TestListEnds(t *testing.T) {
	wide, linked, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	for i := range 1<<14 + 1 {
		if err := os.WriteFile(filepath.Join(wide, fmt.Sprintf("%05d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := checkpoint.List(wide); err == nil || !strings.Contains(err.Error(), "ended after 16384") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(filepath.Join(wide, "00000")); err != nil {
		t.Fatal(err)
	}
	if found, err := checkpoint.List(wide); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	for i := range 257 {
		dir := filepath.Join(elsewhere, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "m.gguf"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, filepath.Join(linked, fmt.Sprint(i))); err != nil {
			t.Skip("this system makes no links: ", err)
		}
	}
	found, err := checkpoint.List(linked)
	if len(found) != 256 || err == nil || !strings.Contains(err.Error(), "256 were followed") {
		t.Errorf("%d found, %v", len(found), err)
	}
}
