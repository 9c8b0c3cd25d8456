package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tokenrouter/scripting/api"
)

// writeTypes writes the annotations into a folder of dir, where no router is
// looked for, and the editor's settings beside the routers. Settings that are
// there stay: they are the user's.
func writeTypes(to io.Writer, dir string) error {
	types := filepath.Join(dir, "types")
	if err := os.MkdirAll(types, 0o755); err != nil {
		return fmt.Errorf("--types: %w", err)
	}
	path := filepath.Join(types, "tokenrouter.lua")
	if err := os.WriteFile(path, api.Annotations(), 0o644); err != nil {
		return fmt.Errorf("--types: %w", err)
	}
	fmt.Fprintln(to, onTerminal(path))
	path = filepath.Join(dir, ".luarc.json")
	there, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(there, []byte(api.Editor)):
	case err == nil:
		fmt.Fprintf(to, "%s is there already and stays; its \"workspace.library\" should have \"types\"\n", onTerminal(path))
		return nil
	case !os.IsNotExist(err):
		return fmt.Errorf("--types: %w", err)
	default:
		if err := os.WriteFile(path, []byte(api.Editor), 0o644); err != nil {
			return fmt.Errorf("--types: %w", err)
		}
	}
	fmt.Fprintln(to, onTerminal(path))
	fmt.Fprintln(to, "open the folder in an editor with LuaLS and write ---@param r Row above function route(r)")
	return nil
}
