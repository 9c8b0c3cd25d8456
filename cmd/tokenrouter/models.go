package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/tui/frame"
)

// modelsCmd lists, describes and makes models.
type modelsCmd struct {
	List  modelsListCmd  `cmd:"" default:"withargs" help:"List the embedded models and those on disk (the default)."`
	Info  modelsInfoCmd  `cmd:"" help:"Say what a model is and what it takes in memory, without loading it."`
	Synth modelsSynthCmd `cmd:"" help:"Make a model of a given shape with random weights, to measure with."`
}

// modelsListCmd lists what can be named.
type modelsListCmd struct {
	Dir  string `placeholder:"DIR" help:"Look in this folder instead of ./models and those of $TOKENROUTER_MODELS."`
	JSON bool   `help:"Print a JSON array."`
}

// listedModel is a line of the list, and its stable form in --json.
type listedModel struct {
	Name   string `json:"name"`
	Path   string `json:"path"`   // "" of an embedded one
	Kind   string `json:"kind"`   // embedded, gguf, safetensors
	Family string `json:"family"` // "" if it cannot be opened
	Params int64  `json:"parameters"`
	Bytes  int64  `json:"bytes"` // on disk
	Error  string `json:"error,omitempty"`
}

func (l *modelsListCmd) Run() error {
	dirs := modelFolders()
	if l.Dir != "" {
		dirs = []string{l.Dir}
	} else if _, err := os.Stat(dirs[0]); errors.Is(err, os.ErrNotExist) {
		dirs = dirs[1:] // nobody asked for ./models
	}
	found, missing := checkpoint.List(dirs...)
	var list []listedModel
	for _, name := range tiny.Names() {
		m, err := embedded(name)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	for i := range found {
		list = append(list, listed(&found[i]))
	}
	if err := l.print(os.Stdout, list); err != nil {
		return err
	}
	switch {
	case missing != nil && l.Dir != "":
		return fmt.Errorf("%w%s", missing, offer)
	case missing != nil:
		fmt.Fprintln(os.Stderr, "tokenrouter:", missing)
	case len(found) == 0 && l.Dir != "":
		return fmt.Errorf("no model is in %s or below it: no .gguf file, and no folder with config.json and .safetensors files%s", l.Dir, offer)
	case len(found) == 0:
		fmt.Fprintf(os.Stderr, "nothing else is in %s; --dir DIR looks elsewhere\n", foldersText())
	}
	return nil
}

// embedded is a line of a model that the program carries.
func embedded(name string) (listedModel, error) {
	c, err := tiny.Open(name)
	if err != nil {
		return listedModel{}, err
	}
	out := listedModel{Name: name, Kind: "embedded", Family: c.Config.Family, Params: c.Config.Params(), Bytes: c.Bytes()}
	return out, c.Close()
}

// listed is a line of a model on disk. One that cannot be used is shown with the
// reason.
func listed(f *checkpoint.Found) listedModel {
	out := listedModel{Name: modelName(f.Path), Path: f.Path, Kind: string(f.Kind), Bytes: f.Bytes}
	c, err := checkpoint.Open(f.Path)
	if err != nil {
		out.Error, out.Bytes = err.Error(), sizeOf(f.Path)
		return out
	}
	defer c.Close()
	out.Family, out.Params, out.Bytes = c.Config.Family, c.Config.Params(), c.Bytes()
	return out
}

func (l *modelsListCmd) print(to io.Writer, list []listedModel) error {
	if l.JSON {
		return printJSON(to, list)
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tFAMILY\tPARAMETERS\tSIZE\tWHERE")
	for i := range list {
		m := &list[i]
		where := frame.Clean(cmp.Or(m.Path, "embedded"), false)
		if m.Error != "" {
			fmt.Fprintf(w, "%s\t\t\t%s\tcannot be used: %s\n", m.Name, bytesText(m.Bytes), frame.Clean(m.Error, false))
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Family, count(m.Params), bytesText(m.Bytes), where)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(to, kernelsText())
	return err
}

// kernelsText is the level of the arithmetic.
func kernelsText() string {
	if cpu.Current() == cpu.Go {
		return slowKernels()
	}
	text := "kernels " + cpu.Current().String()
	if best := cpu.Best(); best > cpu.Current() {
		text += fmt.Sprintf(" (%s asks for it; this machine has %s)", cpu.Variable, best)
	}
	return text
}
