package head_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/algos/head"
)

// A router may make up names of heads for as long as it runs: those that are none
// take no memory, and one that is written later is found.
func TestNamesWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	lib := head.NewLibrary(dir, head.Options{})
	for i := range 3 * head.MaxHeld {
		if _, err := lib.Get(fmt.Sprint("none-", i)); err == nil {
			t.Fatal("a head that is not there was loaded")
		}
	}
	if n := lib.Held(); n > head.MaxHeld {
		t.Errorf("%d names are held, want %d at most", n, head.MaxHeld)
	}
	name := fmt.Sprint("none-", 3*head.MaxHeld-1)
	save(t, dir, name, specs[0], nil)
	if _, err := lib.Get(name); err != nil {
		t.Error(err)
	}
}

// A link in the folder that leads nowhere is an error, not the shipped head of that
// name.
func TestDeadLinkHidesShippedHead(t *testing.T) {
	for _, to := range []string{"gone.json", "r2r.json"} {
		dir := t.TempDir()
		for _, ext := range []string{".json", ".safetensors"} {
			if err := os.Symlink(to, filepath.Join(dir, "r2r"+ext)); err != nil {
				t.Skip(err) // a system without links
			}
		}
		lib := head.NewLibrary(dir, head.Options{})
		if _, err := lib.Get("r2r"); err == nil || !strings.Contains(err.Error(), "r2r.json") {
			t.Errorf("link to %s: %v", to, err)
		}
		if _, shipped, err := lib.Manifest("r2r"); err == nil || shipped {
			t.Errorf("link to %s: shipped %v, %v", to, shipped, err)
		}
	}
}
