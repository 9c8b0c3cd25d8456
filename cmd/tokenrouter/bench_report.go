package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tokenrouter/kernels/limits"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model/bench"
)

// benchReport is what bench engine measured, and its stable form in --json.
type benchReport struct {
	Kernels string          `json:"kernels"`
	Model   *benchModel     `json:"model,omitempty"`
	Limits  []bench.Machine `json:"limits,omitempty"`
	Steps   []bench.Step    `json:"steps,omitempty"`
	Share   *bench.Share    `json:"share,omitempty"`
	Pauses  *bench.Pauses   `json:"pauses,omitempty"`
	Handoff *benchHandoff   `json:"handoff,omitempty"`
}

// benchModel is a model that was measured.
type benchModel struct {
	Name    string `json:"name"`
	Params  int64  `json:"parameters"`
	Weights string `json:"weights"` // formats in memory
	KV      string `json:"kv"`
	Bytes   int64  `json:"bytes"` // of weights that a step reads
}

// benchHandoff is two models that write together.
type benchHandoff struct {
	Models []benchModel    `json:"models"`
	Rates  []bench.Handoff `json:"rates"`
	Share  []bench.Share   `json:"share"`
}

func (m *benched) reported() *benchModel {
	return &benchModel{m.name, int64(m.Params()), m.Format(), m.KVFormat(), m.Weights()}
}

func (m *benchModel) String() string {
	return fmt.Sprintf("%s: %s parameters, %s, a step reads %s of weights", m.Name, count(m.Params), heldText(m.Weights, m.KV), bytesText(m.Bytes))
}

func (r *benchReport) print(to io.Writer) error {
	var b strings.Builder
	if r.Model != nil {
		fmt.Fprintln(&b, r.Model)
	}
	fmt.Fprintln(&b, kernelsText())
	for i := range r.Limits {
		printLimits(&b, &r.Limits[i])
	}
	if len(r.Steps) > 0 {
		printSteps(&b, r.Steps)
	}
	if r.Share != nil {
		fmt.Fprintln(&b, "\nthis model twice, on shared cores")
		printShare(&b, r.Share)
	}
	if p := r.Pauses; p != nil {
		fmt.Fprintf(&b, "\ngarbage collector, %d collections, %s, batch %d: the world stood still in ms (median, 99th percentile, longest; of it until all had stopped)\n", p.Collections, coresText(p.Cores), p.Batch)
		fmt.Fprintf(&b, "  decoding  %s\n  plain Go  %s\n", pauseText(&p.Decoding), pauseText(&p.PlainGo))
	}
	if r.Handoff != nil {
		r.Handoff.print(&b)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func printLimits(b *strings.Builder, m *bench.Machine) {
	fmt.Fprintf(b, "\nlimits of %s\n", coresText(m.Cores))
	fmt.Fprintf(b, "  read   %7.1f GB/s   %s, %s\n", m.Read.PerSecond/1e9, bytesText(m.Buffer), m.Read.Loop)
	for _, k := range []struct {
		kind limits.Kind
		rate limits.Rate
	}{{limits.Float, m.Float}, {limits.Int16, m.Int16}, {limits.Int8, m.Int8}} {
		fmt.Fprintf(b, "  %-6v %7.1f GOP/s  %s\n", k.kind, k.rate.PerSecond/1e9, k.rate.Loop)
	}
}

func coresText(n int) string {
	if n == 1 {
		return "1 core"
	}
	return fmt.Sprintf("%d cores", n)
}

func printSteps(b *strings.Builder, steps []bench.Step) {
	fmt.Fprintln(b)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "PHASE\tCORES\tBATCH\tMS\tTOK/S\tGB/S\tGOP/S\tLIMIT\tOF LIMIT\t")
	samples, disturbed, cores := 0, 0, 0
	for i := range steps {
		s := &steps[i]
		batch := fmt.Sprint(s.Batch)
		if s.Phase == "prefill" {
			batch = fmt.Sprintf("%d tokens", s.Tokens)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%.3g\t%.0f\t%.1f\t%.0f\t%s\t%.0f %%\t\n", s.Phase, s.Cores, batch,
			s.Seconds*1e3, s.TokensPerSecond, s.BytesPerSecond/1e9, s.OpsPerSecond/1e9, s.Limit, 100*s.Fraction)
		samples, disturbed, cores = samples+s.Samples, disturbed+s.Disturbed, max(cores, s.Cores)
	}
	w.Flush() // to memory
	switch {
	case cores > team.Machine():
		fmt.Fprintf(b, "this machine has %s: threads beyond them waited for each other\n", coresText(team.Machine()))
	case disturbed*5 > samples:
		fmt.Fprintf(b, "threads lost their core for a moment in %d of %d runs, to other programs or other threads of this one; figures of several cores are less sure\n", disturbed, samples)
	}
}

func printShare(b *strings.Builder, s *bench.Share) {
	fmt.Fprintf(b, "  %s, batch %d: alone on half of them %s, both at once %s tok/s: %.2f and %.2f of it kept\n", coresText(s.Cores), s.Batch,
		pairText(s.Solo, s.Batch), pairText(s.Both, s.Batch), s.Kept[0], s.Kept[1])
	fmt.Fprintf(b, "  one idle, the other on all of them %.0f tok/s: %.2f times\n", s.All*float64(s.Batch), s.Gain)
}

func pairText(steps [2]float64, batch int) string {
	return fmt.Sprintf("%.0f and %.0f", steps[0]*float64(batch), steps[1]*float64(batch))
}

func pauseText(p *bench.Pause) string {
	q := func(q *bench.Quantiles) string {
		return fmt.Sprintf("%.2f %.2f %.2f", q.Median*1e3, q.P99*1e3, q.Max*1e3)
	}
	return fmt.Sprintf("%s (%s)", q(&p.Total), q(&p.Stopping))
}

func (h *benchHandoff) print(b *strings.Builder) {
	fmt.Fprintln(b, "\na hand-off after every token between")
	for i := range h.Models {
		fmt.Fprintln(b, " ", &h.Models[i])
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "CORES\tREQUESTS\tIN TURN TOK/S\tSIDE BY SIDE TOK/S\t")
	for i := range h.Rates {
		r := &h.Rates[i]
		fmt.Fprintf(w, "%d\t%d\t%.0f\t%.0f\t\n", r.Cores, r.Requests, r.InTurn, r.SideBySide)
	}
	w.Flush() // to memory
	for i := range h.Share {
		printShare(b, &h.Share[i])
	}
}
