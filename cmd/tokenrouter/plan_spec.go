package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/runtime/plan"
)

// The one system that specs describe; other words for start, tie and dispatch
// are refused, as they would change the figures.
const (
	specStart    = "all N requests waiting at model 0"
	specTie      = "merge"
	specDispatch = "queue-count"
)

// specInput is a system as a file holds it; docs/cli.md describes each field.
type specInput struct {
	Like      string         `json:"like"`
	N         int            `json:"N"`
	Models    int            `json:"models"`
	Routing   [][]float64    `json:"routing"`
	Committed [][]float64    `json:"committed"`
	LatencyMS []*specLatency `json:"latency_ms"`
	QuantumMS float64        `json:"quantum_ms"`
	B         []int          `json:"B"`
	Start     string         `json:"start"`
	Tie       string         `json:"tie"`
	Dispatch  string         `json:"dispatch"`
	BatchCap  capOrCaps      `json:"batch_cap"`
}

type specLatency struct {
	Intercept float64 `json:"intercept"`
	Slope     float64 `json:"slope_per_request"`
}

func (l *specLatency) UnmarshalJSON(text []byte) error {
	type plain specLatency
	*l = specLatency{} // nothing stays of the one that it is read over
	return readObject(text, (*plain)(l), "intercept", "slope_per_request")
}

// capOrCaps is one most rows of a batch for all models, or one each.
type capOrCaps []int

func (c *capOrCaps) UnmarshalJSON(text []byte) error {
	var one int
	if json.Unmarshal(text, &one) == nil {
		*c = nil
		if string(text) != "null" {
			*c = capOrCaps{one}
		}
		return nil
	}
	var each []int
	if err := json.Unmarshal(text, &each); err != nil {
		return errors.New(`"batch_cap" is neither null nor a number of rows nor a list of them`)
	}
	*c = each
	return nil
}

var inputFields = []string{
	"like", "N", "models", "routing", "committed", "latency_ms", "quantum_ms",
	"B", "start", "tie", "dispatch", "batch_cap",
}

// readObject reads a JSON object and refuses fields that are not known, letter
// for letter: one misspelt would silently be left out.
func readObject(text []byte, to any, known ...string) error {
	var fields map[string]json.RawMessage
	if err := decode(text, &fields); err != nil {
		return err
	}
	if fields == nil {
		return errors.New("null; give an object")
	}
	var unknown []string
	for name := range fields {
		if !slices.Contains(known, name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		return fmt.Errorf("unknown field %s; known are %s", strings.Join(unknown, ", "), strings.Join(known, ", "))
	}
	return decode(text, to)
}

// decode is json.Unmarshal with errors in words.
func decode(text []byte, to any) error {
	err := json.Unmarshal(text, to)
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	syntax, broken := errors.AsType[*json.SyntaxError](err)
	switch {
	case broken:
		return fmt.Errorf("not JSON: %w", syntax)
	case !ok:
		return err
	case wrong.Field == "":
		return fmt.Errorf("a JSON %s; give an object", wrong.Value)
	}
	want := map[reflect.Kind]string{
		reflect.Int: "a whole number", reflect.Float64: "a number", reflect.String: "text", reflect.Slice: "a list",
	}[wrong.Type.Kind()]
	return fmt.Errorf("%q is a %s; give %s", wrong.Field, wrong.Value, cmp.Or(want, "an object"))
}

// specEntry is one vector of a file of them.
type specEntry struct {
	ID    string          `json:"id"`
	Input json.RawMessage `json:"input"`
}

func (e *specEntry) UnmarshalJSON(text []byte) error {
	type plain specEntry
	return readObject(text, (*plain)(e), "id", "note", "input", "expect")
}

// readSpec finds a system in a file: the file's only one, or of a file of
// vectors the one called id.
func readSpec(file, id string) (*specInput, error) {
	text, err := readFileOrInput(file)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	in, err := findSpec(text, id)
	if err != nil {
		return nil, fmt.Errorf("--spec %s: %w", file, err)
	}
	return in, nil
}

func readFileOrInput(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(file)
}

func findSpec(text []byte, id string) (*specInput, error) {
	var top map[string]json.RawMessage
	if err := decode(text, &top); err != nil {
		return nil, err
	}
	if top["vectors"] == nil {
		if id != "" {
			return nil, fmt.Errorf("--id %s names one of several, and this file holds one system; leave --id out", id)
		}
		in := &specInput{}
		if err := readObject(text, in, inputFields...); err != nil {
			return nil, err
		}
		if in.Like != "" {
			return nil, fmt.Errorf(`"like" refers to %s of a file of vectors; give that file, with --id`, in.Like)
		}
		return in, nil
	}
	var file struct {
		Vectors []specEntry `json:"vectors"`
		Extra   []specEntry `json:"extra"`
	}
	if err := readObject(text, &file, "criterion", "vectors", "extra"); err != nil {
		return nil, err
	}
	entries := append(file.Vectors, file.Extra...)
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	if id == "" {
		return nil, fmt.Errorf("this file holds several systems; name one with --id: %s", strings.Join(ids, ", "))
	}
	return resolve(entries, ids, id, nil)
}

// resolve reads the entry called id over the one that it is like.
func resolve(entries []specEntry, ids []string, id string, via []string) (*specInput, error) {
	i := slices.Index(ids, id)
	if i < 0 {
		return nil, fmt.Errorf("there is no %s; ids are %s", id, strings.Join(ids, ", "))
	}
	if slices.Contains(via, id) {
		return nil, fmt.Errorf("%s is like itself: %s", id, strings.Join(append(via, id), ", "))
	}
	if entries[i].Input == nil {
		return nil, fmt.Errorf(`%s has no "input"`, id)
	}
	in := &specInput{}
	if err := readObject(entries[i].Input, in, inputFields...); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if in.Like == "" {
		return in, nil
	}
	base, err := resolve(entries, ids, in.Like, append(via, id))
	if err != nil {
		return nil, err
	}
	return base, decode(entries[i].Input, base)
}

// spec is the system, nil if only feasibility can be told because step times or
// routing are not given.
func (in *specInput) spec() (*plan.Spec, error) {
	for _, f := range []struct{ field, got, want string }{
		{"start", in.Start, specStart}, {"tie", in.Tie, specTie}, {"dispatch", in.Dispatch, specDispatch},
	} {
		if f.got != "" && f.got != f.want {
			return nil, fmt.Errorf("%q is %q; only %q is planned for", f.field, f.got, f.want)
		}
	}
	models := len(in.Routing)
	if in.Models != 0 && models != 0 && in.Models != models {
		return nil, fmt.Errorf(`"models" is %d, and "routing" has %d rows`, in.Models, models)
	}
	if in.N < 1 || in.N > maxPlanN {
		return nil, fmt.Errorf(`"N" is %d; give 1 to %d active requests`, in.N, maxPlanN)
	}
	if n := max(models, len(in.B), len(in.LatencyMS)); n > maxPlanModels {
		return nil, fmt.Errorf("%d models; at most %d can be planned for", n, maxPlanModels)
	}
	s := &plan.Spec{N: in.N, P: in.Routing, K: in.Committed, B: in.B, Cap: in.BatchCap, Quantum: in.QuantumMS}
	if in.LatencyMS == nil || in.Routing == nil {
		switch {
		case len(in.B) == 0:
			return nil, errors.New(`"latency_ms" and "routing" are needed for throughput, "B" for feasibility; give either`)
		case slices.Min(in.B) < 1:
			return nil, fmt.Errorf(`"B" is %v; thresholds are at least 1`, in.B)
		}
		return nil, nil
	}
	for i, l := range in.LatencyMS {
		if l == nil {
			return nil, fmt.Errorf(`"latency_ms" of model %d is null; give {"intercept", "slope_per_request"}`, i)
		}
		s.Step = append(s.Step, plan.Latency{Base: l.Intercept, PerRow: l.Slope})
	}
	if err := stochastic(`"routing"`, s.P); err != nil {
		return nil, err
	}
	if err := bounded(`"committed"`, s.K); err != nil {
		return nil, err
	}
	if len(s.Cap) == 1 {
		s.Cap = slices.Repeat(s.Cap, models)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, coarse(`"latency_ms"`, s.Step, s.N, cmp.Or(s.Quantum, defaultQuantum), `"quantum_ms"`)
}

// specReply is what --spec --json prints; docs/cli.md describes each key.
type specReply struct {
	Throughput   sig6   `json:"throughput_tok_per_s"`
	FourDigits   string `json:"throughput_4sig"`
	Best         []int  `json:"B_star"`
	AtBest       sig6   `json:"throughput_at_B_star"`
	BestFront    []int  `json:"B_star_with_B0_1"`
	AtBestFront  sig6   `json:"throughput_at_B_star_with_B0_1"`
	Eager        sig6   `json:"throughput_all_ones"`
	StepsPerS    []sig6 `json:"decode_steps_per_s"`
	BusyFraction []sig6 `json:"busy_fraction"`
	MeanBatch    []sig6 `json:"mean_batch"`

	input  *plan.Spec
	looked string  // how the best vectors were found
	stderr float64 // the largest of the figures, 0 where they are exact
}

// feasibleReply is printed instead where B deadlocks, or where the file has too
// little for more.
type feasibleReply struct {
	Feasible bool `json:"feasible"`
}

// sig6 prints six significant digits.
type sig6 float64

func (x sig6) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%.6g", float64(x)), nil }

func sixes(xs []float64) []sig6 {
	out := make([]sig6, len(xs))
	for i, x := range xs {
		out[i] = sig6(x)
	}
	return out
}

// fourDigits rounds to four significant digits and keeps zeros at the end.
func fourDigits(x float64) string {
	e := strconv.FormatFloat(x, 'e', 3, 64)
	_, exp, _ := strings.Cut(e, "e")
	n, err := strconv.Atoi(exp)
	rounded, err2 := strconv.ParseFloat(e, 64)
	if err != nil || err2 != nil {
		return e // infinite
	}
	return strconv.FormatFloat(rounded, 'f', max(0, 3-n), 64)
}

func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
