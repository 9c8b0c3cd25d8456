package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/ladder"
	"tokenrouter/runtime/live"
)

// aboutJSON says what a ladder is of: everything that its figures depend on but
// the rung, the concurrency and the seed.
type aboutJSON struct {
	Program     string             `json:"program"`
	Models      []string           `json:"models"`
	Held        []string           `json:"held"` // hash of the weights and formats of models that compute, empty for others
	Router      string             `json:"router"`
	Params      map[string]float64 `json:"params"`
	Clock       string             `json:"clock"`
	TokensFrom  string             `json:"tokens_from"`
	Profile     *cost.Profile      `json:"profile"` // null on the clock live
	Contention  []string           `json:"contention"`
	Jitter      float64            `json:"jitter"`
	Workload    string             `json:"workload"`
	MaxTokens   int                `json:"max_tokens"`
	Temperature float64            `json:"temperature"`
	TopK        int                `json:"top_k"`
	TopP        float64            `json:"top_p"`
	Stops       []string           `json:"stops"`
	Seats       int                `json:"seats"`
	KVTokens    int                `json:"kv_tokens"`
	Chunk       int                `json:"chunk"`
	BatchTokens int                `json:"batch_tokens"`
	NoPrefix    bool               `json:"no_prefix_cache"`
	Overcommit  float64            `json:"kv_overcommit"`
	Speed       float64            `json:"speed"`
	Requests    int                `json:"requests"` // 0: as many as come
	Seconds     float64            `json:"seconds"`  // 0: until the requests are over
	WarmUp      float64            `json:"warm_up_s"`
	Kernels     string             `json:"kernels"` // level of the arithmetic and threads, where models compute on the clock live
}

// ablationJSON is the stable form of ablate --json.
type ablationJSON struct {
	aboutJSON
	Concurrency []int    `json:"concurrency"`
	Seeds       []uint64 `json:"seeds"`
	WallS       float64  `json:"wall_s"` // of the runs made now
	Notes       []string `json:"notes"`
	ladder.Report
	Published []ladder.PublishedStep `json:"published"`
}

func (b *ablation) describe(c *cluster) aboutJSON {
	st, f := c.runtime.Status(), c.flags
	out := aboutJSON{
		Program: "tokenrouter " + version(), Models: c.names(), Router: routerLabel(st.RouterFile, st.RouterHash), Params: map[string]float64{},
		Clock: live.ClockText(st.Clock, st.Profile), TokensFrom: f.Tokens, Contention: append([]string{}, f.Contention...), Jitter: f.Jitter,
		Workload: f.Workload, MaxTokens: f.maxNew, Temperature: float64(f.sampling().Temperature), TopK: f.TopK, TopP: f.TopP, Stops: append([]string{}, f.Stop...),
		Seats: f.Seats, KVTokens: *f.KVTokens, Chunk: f.Chunk, BatchTokens: *f.BatchTokens, NoPrefix: f.NoPrefixCache, Overcommit: f.KVOvercommit,
		Speed: *f.Speed, Requests: b.limit, Seconds: b.length.Seconds(), WarmUp: b.warmUp.Seconds(),
	}
	for _, k := range c.runtime.Knobs() {
		out.Params[k.Name] = k.Value
	}
	out.Held = []string{}
	if c.cast.shelf != nil {
		for _, m := range c.cast.models {
			out.Held = append(out.Held, m.Hash[:12]+" "+heldText(m.Weights, m.KV))
		}
	}
	if f.Clock != live.ClockLive {
		out.Profile = &c.profile
	} else {
		out.Kernels = fmt.Sprintf("%s, %d threads", cpu.Current(), f.threads())
	}
	return out
}

// published says whether the published ladder is of such models and such a router
// that it has a place beside this one.
func (b *ablation) published() bool {
	return len(b.roles) == 2 && b.about.Profile != nil && strings.HasPrefix(b.about.Profile.Name, "a100-r2r")
}

func (b *ablation) print(w io.Writer) error {
	table := ladder.NewTable(b.grid, b.roles, b.cells)
	if b.cmd.CSV {
		return ladder.WriteCSV(w, table, b.cells)
	}
	var slos []*ladder.SLO
	if b.cmd.SLO > 0 {
		for _, key := range []string{ladder.UserMean, ladder.UserP5} {
			slos = append(slos, ladder.NewSLO(table, b.cells, b.cmd.SLO, key))
		}
	}
	if !b.cmd.JSON {
		_, err := io.WriteString(w, b.head()+"\n"+ladder.Text(table, slos...)+b.foot(table))
		return err
	}
	out := ablationJSON{
		aboutJSON: b.about, Concurrency: b.grid.Concurrency, Seeds: b.grid.Seeds, WallS: b.wall.Seconds(),
		Notes: append([]string{}, b.notes...), Report: ladder.NewReport(table, b.cells, slos...),
	}
	if b.published() {
		out.Published = ladder.Published
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(&out)
}

// head says what the tables are of.
func (b *ablation) head() string {
	var out strings.Builder
	o := &b.about
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-13s%s", name, ladder.Wrap(fmt.Sprintf(format, args...), 13))
	}
	roles := make([]string, len(b.roles))
	for i, r := range b.roles {
		if roles[i] = r; o.Models[i] != r {
			roles[i] += " " + o.Models[i]
		}
	}
	row("models", "%s", strings.Join(roles, " + "))
	knobs := ""
	for _, k := range slices.Sorted(maps.Keys(o.Params)) {
		knobs += fmt.Sprintf(" %s=%.4g", k, o.Params[k])
	}
	row("router", "%s%s", o.Router, knobs)
	clock := o.Clock
	if b.cmd.virtual() {
		clock += " (virtual time)"
	}
	if o.Speed != 1 && !b.cmd.virtual() {
		clock += fmt.Sprintf(", speed %g", o.Speed)
	}
	if p := o.Profile; p != nil {
		clock += fmt.Sprintf(", messages %g ms", p.LatencyMs)
	}
	if len(o.Contention) > 0 {
		clock += ", slowed " + strings.Join(o.Contention, ", ")
	}
	if o.Jitter > 0 {
		clock += fmt.Sprintf(", jitter %g", o.Jitter)
	}
	if o.Profile != nil && o.Profile.Stalling() {
		clock += ", with the profile's stalls"
	}
	row("clock", "%s", clock)
	tokens := map[string]string{tokensModels: "written by the models", tokensDrawn: "drawn by a law"}[o.TokensFrom]
	if tokens == "" {
		tokens = "of session " + o.TokensFrom
	}
	row("workload", "%s, closed loop, at most %d new tokens, %s", o.Workload, o.MaxTokens, tokens)
	row("runs", "%d rungs, n %s, seeds %s: %d runs", len(b.grid.Rungs), vectorText(b.grid.Concurrency), seedText(b.grid.Seeds), len(b.grid.Order()))
	row("window", "%s", b.windowText())
	row("±, (a to b)", "95 %% intervals over seeds; ratios are of pairs with the same n and seed")
	for i, r := range b.grid.Rungs {
		name := ""
		if i == 0 {
			name = "rungs"
		}
		fmt.Fprintf(&out, "%-13s%-12s %s\n", name, r.Name, r.What)
	}
	return out.String()
}

func (b *ablation) windowText() string {
	text := "first token to last"
	if b.length > 0 && b.warmUp > 0 {
		text = fmt.Sprintf("%g to %g s after the first request", b.warmUp.Seconds(), b.length.Seconds())
	} else if b.warmUp > 0 {
		text = fmt.Sprintf("from %g s after the first request to the last token", b.warmUp.Seconds())
	} else if b.length > 0 {
		text += fmt.Sprintf(" within %g s", b.length.Seconds())
	}
	if b.limit > 0 {
		text += fmt.Sprintf(", %d requests, the end with fewer active ones included", b.limit)
	}
	return text
}

func (b *ablation) foot(t *ladder.Table) string {
	var out strings.Builder
	for _, n := range b.notes {
		out.WriteString(ladder.Wrap(n, 0))
	}
	if len(b.notes) > 0 {
		out.WriteString("\n")
	}
	if b.published() {
		out.WriteString(ladder.PublishedText(t))
	}
	if b.made > 0 {
		fmt.Fprintf(&out, "\n%d runs in %v\n", b.made, b.wall.Round(100*time.Millisecond))
	}
	return out.String()
}

// seedText writes seeds that follow one another as a range.
func seedText(seeds []uint64) string {
	first, last := strconv.FormatUint(seeds[0], 10), strconv.FormatUint(seeds[len(seeds)-1], 10)
	if len(seeds) == 1 {
		return first
	}
	return first + " to " + last
}

// ladderBar draws one line on a terminal and nothing elsewhere.
type ladderBar struct {
	liveLine
	total, done int
	now         ladder.Setting
}

func newLadderBar(f *os.File, total int) *ladderBar {
	return &ladderBar{liveLine: newLiveLine(f), total: total, done: -1}
}

// say writes a line of its own.
func (b *ladderBar) say(text string) {
	if b.w != nil {
		fmt.Fprintln(b.w, text)
	}
}

func (b *ladderBar) begin(s ladder.Setting) {
	b.done++
	b.now = s
	b.show(0, 0)
}

// show tells how far the present run is.
func (b *ladderBar) show(at, of time.Duration) {
	part := float64(b.done)
	if of > 0 {
		part += min(at.Seconds()/of.Seconds(), 1)
	}
	const width = 24
	n := min(int(width*part/float64(max(b.total, 1))), width)
	b.put(fmt.Sprintf("[%s%s] %d/%d  %v", strings.Repeat("#", n), strings.Repeat("-", width-n), b.done, b.total, b.now))
}
