// Command annotate writes what is generated from the catalogue: the annotations
// for editors and the tables of lua.md, in the folder given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/scripting/api"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: annotate DOCS")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "annotate:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	page := filepath.Join(dir, "lua.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	tables, err := api.Tables(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(page, []byte(tables), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tokenrouter.lua"), api.Annotations(), 0o644)
}
