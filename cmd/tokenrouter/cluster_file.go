package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// clusterFile is the TOML file of --cluster; docs/cli.md shows one.
type clusterFile struct {
	Models []clusterModel `toml:"model"`
}

// clusterModel is one of its models. The order does not matter, the role does.
type clusterModel struct {
	Role    string `toml:"role"`
	Path    string `toml:"path"`    // or the name of a model
	Weights string `toml:"weights"` // format they are held in
	KV      string `toml:"kv"`
}

// maxClusterFile bounds what is read of a file that may be anything.
const maxClusterFile = 1 << 20

// readCluster reads the models of a cluster, small first.
func readCluster(name string) ([]origin, error) {
	st, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--cluster: %w", err)
	case !st.Mode().IsRegular() || st.Size() > maxClusterFile:
		return nil, fmt.Errorf("--cluster %s is no TOML file of a cluster", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--cluster: %w", err)
	}
	out, err := parseCluster(text, filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("--cluster %s: %w", name, err)
	}
	return out, nil
}

// parseCluster reads the text of such a file, whose paths are relative to base.
func parseCluster(text []byte, base string) ([]origin, error) {
	var file clusterFile
	dec := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, clusterError(text, err)
	}
	n := len(file.Models)
	if n < 2 || n > 3 {
		return nil, fmt.Errorf("it has %d [[model]] tables; two or three are needed, with the roles small, large and, of three, middle", n)
	}
	out := make([]origin, n)
	filled := make([]bool, n)
	for i := range file.Models {
		m := &file.Models[i]
		wrong := func(key, format string, args ...any) error {
			return shown(text, lineOf(text, i, key), fmt.Sprintf(format, args...))
		}
		at := slices.Index(roleNames(n), m.Role)
		switch {
		case at < 0:
			return nil, wrong("role", "the role %q of model %d is none of %s, which %d models have", m.Role, i+1, strings.Join(roleNames(n), ", "), n)
		case filled[at]:
			return nil, wrong("role", "a second model of the role %s", m.Role)
		case m.Path == "":
			return nil, wrong("path", "the %s model has no path; give a file, a folder or a name", m.Role)
		case m.Weights != "" && !slices.Contains(weightsFormats, m.Weights):
			return nil, wrong("weights", "weights = %q is none of %s", m.Weights, strings.Join(weightsFormats, ", "))
		case m.KV != "" && !slices.Contains(kvFormats, m.KV):
			return nil, wrong("kv", "kv = %q is none of %s", m.KV, strings.Join(kvFormats, ", "))
		}
		o, err := findModel(m.Path, base)
		if err != nil {
			return nil, wrong("path", "%v", err)
		}
		o.weights, o.kv = m.Weights, m.KV
		out[at], filled[at] = o, true
	}
	return out, nil
}

// clusterError says what the parser found, and where.
func clusterError(text []byte, err error) error {
	of, ok := errors.AsType[*toml.DecodeError](err)
	if !ok {
		return err
	}
	row, _ := of.Position()
	what := strings.TrimPrefix(of.Error(), "toml: ")
	if strings.HasPrefix(what, "cannot decode ") || strings.HasPrefix(what, "cannot store ") { // it goes on about types of Go
		what = "this is of another type; the file has [[model]] tables with role, path, weights and kv, each a text in quotes"
	}
	if _, strict := errors.AsType[*toml.StrictMissingError](err); strict {
		what = fmt.Sprintf("%s is not known; the file has [[model]] tables with role, path, weights and kv", strings.Join(of.Key(), "."))
	}
	return shown(text, row, what)
}

// shown is an error with the line that it is about; 0 is none.
func shown(text []byte, row int, what string) error {
	lines := strings.Split(string(text), "\n")
	if row < 1 || row > len(lines) {
		return errors.New(what)
	}
	return fmt.Errorf("line %d: %s\n\t%s", row, what, strings.TrimSpace(lines[row-1]))
}

// lineOf is the line of a key of [[model]] number n, that of the table where it
// lacks the key, and 0 where it is written in another way.
func lineOf(text []byte, n int, key string) (row int) {
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[[model]]") {
			if n--; n < -1 {
				break
			}
			row = i + 1
		}
		if name, _, ok := strings.Cut(line, "="); ok && n == -1 && strings.TrimSpace(name) == key {
			return i + 1
		}
	}
	if n > -1 {
		return 0
	}
	return row
}
