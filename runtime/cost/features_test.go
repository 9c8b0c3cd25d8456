package cost

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
)

// drawn is a batch, and each row's p, d and c as the sets are written in.
func drawn(t *rapid.T) (b Batch, rows [][3]float64) {
	var e event.Batch
	for range rapid.IntRange(1, 12).Draw(t, "rows") {
		r := event.Row{
			Start:   rapid.IntRange(0, 4000).Draw(t, "start"),
			Tokens:  make([]event.Token, rapid.IntRange(1, 600).Draw(t, "tokens")),
			Prefill: rapid.Bool().Draw(t, "prefill"), Sample: rapid.Bool().Draw(t, "sample"),
		}
		p, d := float64(len(r.Tokens)), 0.0
		if r.Sample && !r.Prefill { // a part of a prefill has no decode token
			p, d = p-1, 1
		}
		e.Rows = append(e.Rows, r)
		rows = append(rows, [3]float64{p, d, float64(r.Start)})
	}
	return Of(&e), rows
}

// drawnRow is a row of a set with coefficients.
func drawnRow(t *rapid.T, role string) Row {
	r := Row{Role: role, Features: rapid.SampledFrom(FeatureSets()).Draw(t, "set"), Base: rapid.Float64Range(1e-3, 100).Draw(t, "base")}
	set, err := featuresOf(r.Features)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range set {
		*r.coef(f) = rapid.Float64Range(0, 0.1).Draw(t, f.key())
	}
	if r.Features == hinge {
		r.HingeTokens = rapid.Float64Range(0, 500).Draw(t, "hinge")
	}
	return r
}

// Each set is the sum over the batch's rows that its formula says.
func TestSetsAreTheirFormulas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, rows := drawn(t)
		r := drawnRow(t, Small)
		sum := func(f func(p, d, c float64) float64) (s float64) {
			for _, x := range rows {
				s += f(x[0], x[1], x[2])
			}
			return s
		}
		p := sum(func(p, _, _ float64) float64 { return p })
		d := sum(func(_, d, _ float64) float64 { return d })
		cd := sum(func(_, d, c float64) float64 { return c * d })
		pc := sum(func(p, _, c float64) float64 { return p * c })
		pairs := pc + sum(func(p, _, _ float64) float64 { return p * (p + 1) / 2 })
		pp := sum(func(p, _, _ float64) float64 { return p * p })
		ctx := sum(func(p, d, c float64) float64 { return p + d + c })
		ctx2 := sum(func(p, d, c float64) float64 { return (p + d + c) * (p + d + c) })
		want := map[string]float64{
			"affine": r.PerDecodeRow*d + r.PerPrefillToken*p,
			"eq9":    r.PerToken*(p+d) + r.PerDecodeCtx*cd + r.PerPrefillPair*pairs,
			"split":  r.PerPrefillToken*p + r.PerDecodeRow*d + r.PerDecodeCtx*cd + r.PerPrefillPair*pairs,
			"hinge":  r.PerToken*(p+d) + r.PerTokenBeyond*max(0, p+d-r.HingeTokens) + r.PerDecodeCtx*cd + r.PerPrefillPair*pairs,
			"legacy": r.PerPrefillToken*p + r.PerDecodeRow*d + r.PerCtx*ctx + r.PerPrefillSq*pp + r.PerCtxSq*ctx2,
			"cross":  r.PerPrefillToken*p + r.PerDecodeRow*d + r.PerCtx*ctx + r.PerPrefillSq*pp + r.PerPrefillCtx*pc,
		}[r.Features] + r.Base
		profile := Profile{Name: "p", Rows: []Row{r}}
		got := inMillis(profile.Step(0, &b))
		if math.Abs(got-want) > 1e-9*want+1e-6 {
			t.Fatalf("%s: %v ms, want %v", r.Features, got, want)
		}
		byTerm := 0.0
		for k, x := range r.Terms() {
			if k == 0 {
				byTerm = x.Ms
				continue
			}
			set, _ := featuresOf(r.Features)
			byTerm += x.Ms * set[k-1].of(&b, r.HingeTokens)
		}
		if math.Abs(byTerm-want) > 1e-9*want {
			t.Fatalf("%s: its terms give %v ms, want %v", r.Features, byTerm, want)
		}
	})
}

// The published coefficients are in seconds; the profile's are in ms.
func TestQwen3H100(t *testing.T) {
	p := mustLookup(t, Qwen3H100)
	var b Batch
	for range 16 {
		b.Add(1, 1023, false)
	}
	b.Add(256, 0, true)
	sumCtx, sumCtx2 := 16*1024.0+256, 16*1024.0*1024+256*256
	for model, c := range [][6]float64{
		{0.002582076153, 2.0335711505e-6, 1.6889500804e-5, 3.5429418766e-8, 1.8925400080e-10, 1.5754738958e-13},
		{0.007295929681, 2.0789009923e-5, 2.5632010898e-5, 4.6490885514e-8, 5.1195590336e-10, 2.6851287985e-13},
		{0.014347877296, 5.2941851182e-5, 6.3048760783e-5, 3.6863941394e-8, 8.7740594432e-10, 4.5195933178e-13},
	} {
		seconds := c[0] + c[1]*256 + c[2]*16 + c[3]*sumCtx + c[4]*256*256 + c[5]*sumCtx2
		want := time.Duration(math.Round(seconds * 1e9))
		if got := p.Step(model, &b); got != want {
			t.Errorf("model %d: %v, want %v", model, got, want)
		}
	}
	run, err := p.For(2)
	if err != nil {
		t.Fatal(err)
	}
	if run.Rows[0].Model != "Qwen3-0.6B" || run.Rows[1].Model != "Qwen3-32B" {
		t.Errorf("two models are %s and %s", run.Rows[0].Model, run.Rows[1].Model)
	}
	if k := p.Rows[1].KVTokens; k != 382_304 {
		t.Errorf("the middle model holds %d", k)
	}
}

// A profile of any sets survives its file; a step never gets shorter by a row.
func TestProfileOfSetsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{Name: "p", LatencyMs: rapid.Float64Range(0, 5).Draw(t, "latency")}
		for _, role := range rolesOf[3] {
			r := drawnRow(t, role)
			r.Overhead, r.OverheadPerRow = rapid.Float64Range(0, 5).Draw(t, "overhead"), rapid.Float64Range(0, 1).Draw(t, "per row")
			p.Rows = append(p.Rows, r)
		}
		var text bytes.Buffer
		if err := p.Write(&text); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&text, "p.json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatal(diff)
		}
		b, _ := drawn(t)
		more := b
		more.Add(rapid.IntRange(1, 50).Draw(t, "n"), rapid.IntRange(0, 50).Draw(t, "ctx"), rapid.Bool().Draw(t, "prefill"))
		for m := range p.Rows {
			if p.Step(m, &b) <= 0 || p.Step(m, &more) < p.Step(m, &b) {
				t.Fatalf("%v, then %v with a row more", p.Step(m, &b), p.Step(m, &more))
			}
			if p.Overhead(m, 3) < p.Overhead(m, 2) || p.Overhead(m, 0) < 0 {
				t.Fatal("overhead falls with the rows")
			}
		}
		if want := time.Duration(math.Round(p.LatencyMs * 1e6)); p.Latency() != want {
			t.Fatalf("latency %v, want %v", p.Latency(), want)
		}
	})
}

// Affine is the step of decode batches at that context, below the hinge.
func TestAffineIsTheStepOfDecodeRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{Name: "p", Rows: []Row{drawnRow(t, Small)}}
		rows, ctx := rapid.IntRange(1, 64).Draw(t, "rows"), rapid.IntRange(0, 4000).Draw(t, "ctx")
		p.Rows[0].HingeTokens = max(p.Rows[0].HingeTokens, 64)
		base, perRow := p.Affine(0, float64(ctx))
		b := Decoding(rows, ctx)
		want := inMillis(p.Step(0, &b))
		if got := base + perRow*float64(rows); math.Abs(got-want) > 1e-9*want+1e-6 {
			t.Fatalf("%v + %v x %d is %v, the step %v", base, perRow, rows, got, want)
		}
	})
}

func TestScaled(t *testing.T) {
	p := mustLookup(t, Qwen3H100)
	p.Rows[1].Overhead = 1
	s, err := p.Scaled([]float64{1, 0.5, 2})
	if err != nil {
		t.Fatal(err)
	}
	b := Decoding(8, 900)
	b.Add(300, 20, true)
	for m, x := range []float64{1, 0.5, 2} {
		want := x * float64(p.Step(m, &b))
		if got := float64(s.Step(m, &b)); math.Abs(got-want) > 1 {
			t.Errorf("model %d takes %v, want %v", m, got, want)
		}
		if s.Overhead(m, 4) != p.Overhead(m, 4) {
			t.Errorf("model %d: the overhead is scaled", m)
		}
	}
	if diff := cmp.Diff(mustLookup(t, Qwen3H100).Rows[2], p.Rows[2]); diff != "" {
		t.Errorf("the profile itself has changed: %s", diff)
	}
	for want, factors := range map[string][]float64{
		"3 models for 2 factors": {1, 2}, "factor 0 of the middle": {1, 0, 1}, "factor NaN of the small": {math.NaN(), 1, 1},
		"factor +Inf of the large": {1, 1, math.Inf(1)}, "factor -1 of the small": {-1, 1, 1},
	} {
		if _, err := p.Scaled(factors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", factors, err, want)
		}
	}
}

// Squares over a long context stay a time: no step lasts longer than a thousand
// hours.
func TestStepIsBounded(t *testing.T) {
	p := Profile{Name: "p", Rows: []Row{{Role: Small, Features: legacy, Base: 1, PerCtxSq: maxMillis, Overhead: maxMillis, OverheadPerRow: maxMillis}}}
	b := Decoding(1000, 100_000_000)
	if got := p.Step(0, &b); got != 1000*time.Hour {
		t.Errorf("step %v", got)
	}
	if got := p.Overhead(0, math.MaxInt); got != 1000*time.Hour {
		t.Errorf("overhead %v", got)
	}
}

func TestOutside(t *testing.T) {
	p := Profile{Rows: []Row{{Features: hinge, HingeTokens: 8, Box: &Box{
		Tokens: &Range{2, 20}, TokensBeyond: &Range{0, 12}, DecodeCtx: &Range{0, 500}, PrefillPairs: &Range{0, 300},
	}}, {}}}
	with := func(rows, ctx, prompt, start int) *Batch {
		b := Decoding(rows, ctx)
		if prompt > 0 {
			b.Add(prompt, start, true)
		}
		return &b
	}
	for _, c := range []struct {
		name string
		b    *Batch
		want bool
	}{
		{"inside", with(4, 100, 10, 0), false},
		{"at its edge", with(5, 100, 15, 5), false},
		{"too few", with(1, 100, 0, 0), true},
		{"too many", with(21, 1, 0, 0), true},
		{"context", with(2, 251, 0, 0), true},
		{"a chunk far behind", with(2, 1, 10, 100), true},
	} {
		if got := p.Outside(0, c.b); got != c.want {
			t.Errorf("%s: outside is %v", c.name, got)
		}
		if p.Outside(1, c.b) {
			t.Errorf("%s: a row without a box has an outside", c.name)
		}
	}
}

func TestReadSets(t *testing.T) {
	p, err := Read(strings.NewReader(`{"name": "mine", "latency_ms": 0.25, "roles": [{
		"role": "small", "model": "m", "features": "hinge", "kv_tokens": 900, "tp": 2,
		"base_ms": 3, "per_token_ms": 0.01, "per_token_beyond_ms": 0.5, "hinge_tokens": 10,
		"overhead_ms": 0.5, "overhead_per_row_ms": 0.125,
		"box": {"tokens": [1, 40]},
		"fit": {"batches": 80, "all": {"n": 20, "mape": 0.03, "bias": -0.01}, "prefill": {"n": 0, "mape": 0, "bias": 0},
			"decode": {"n": 20, "mape": 0.03, "bias": -0.01}, "r2": -0.5, "zeroed": ["per_decode_ctx_ms"], "stretch": 1.02}
	}]}`), "mine.json")
	if err != nil {
		t.Fatal(err)
	}
	b := Decoding(14, 100)
	if got := p.Step(0, &b); got != 5140*time.Microsecond {
		t.Errorf("3 + 14*0.01 + 4*0.5 ms is %v", got)
	}
	if got := p.Overhead(0, 4); got != time.Millisecond {
		t.Errorf("0.5 + 4*0.125 ms is %v", got)
	}
	if got := p.Latency(); got != 250*time.Microsecond {
		t.Errorf("latency %v", got)
	}
	if b := Decoding(41, 1); !p.Outside(0, &b) {
		t.Error("41 tokens are inside")
	}
}

func TestReadSetErrors(t *testing.T) {
	row := func(s string) string { return `{"name": "p", "roles": [{"role": "small", "base_ms": 1, ` + s + `}]}` }
	for _, c := range []struct{ in, want string }{
		{row(`"features": "eq8"`), `feature set "eq8" is unknown; sets are affine, eq9, split, hinge, legacy, cross`},
		{row(`"feature_set": "eq9"`), `unknown field "feature_set"`},
		{row(`"per_ctx_ms": 1`), `per_ctx_ms belongs to the feature set legacy, cross and the row is affine`},
		{row(`"features": "split", "per_token_ms": 1`), `per_token_ms belongs to the feature set eq9, hinge and the row is split`},
		{row(`"features": "split", "hinge_tokens": 1`), `hinge_tokens belongs to the feature set hinge`},
		{row(`"features": "hinge", "hinge_tokens": -1`), `hinge_tokens is -1`},
		{row(`"features": "eq9", "per_token_ms": -1`), `per_token_ms of small is -1`},
		{row(`"kv_tokens": -1`), `kv_tokens is -1`},
		{row(`"tp": -1`), `tp is -1`},
		{row(`"overhead_ms": -1`), `overhead_ms of small is -1`},
		{row(`"overhead_per_row_ms": 4e6`), `overhead_per_row_ms of small is 4e+06`},
		{row(`"box": {"rows": [0, 1]}`), `unknown field "rows"`},
		{row(`"box": {"ctx": [0, 1]}`), `ctx of the box belongs to the feature set legacy, cross`},
		{row(`"box": {"decode_rows": [2, 1]}`), `decode_rows of the box is [2 1]`},
		{row(`"box": {"decode_rows": [-2, 1]}`), `decode_rows of the box is [-2 1]`},
		{row(`"stalls": {"share": 2, "ms": [1]}`), `share of stalls is 2; give a share above 0, 1 at most`},
		{row(`"overhead_stalls": {"ms": [1]}`), `share of overhead_stalls is 0`},
		{row(`"stalls": {"share": 0.1}`), `ms of stalls has 0 lengths`},
		{row(`"stalls": {"share": 0.1, "ms": [1, -2]}`), `ms of stalls has -2; a stall lies in 0 to 3.6e+06`},
		{row(`"fit": {"batches": -2}`), `batches of the fit is -2`},
		{row(`"fit": {"stretch": -2}`), `stretch of the fit is -2`},
		{row(`"fit": {"decode": {"mape": -2}}`), `decode of the fit is`},
		{`{"name": "p", "roles": [{"role": "small", "base_ms": 0, "features": "split", "per_decode_row_ms": 1}]}`, "base_ms of small is missing or 0"},
		{`{"name": "p", "latency_ms": -1, "roles": [{"role": "small", "base_ms": 1}]}`, "latency_ms is -1"},
	} {
		_, err := Read(strings.NewReader(c.in), "x.json")
		if err == nil || !strings.HasPrefix(err.Error(), "cost profile x.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gives %v, want %s", c.in, err, c.want)
		}
	}
	// A row without a base has a step time where each token has one.
	if _, err := Read(strings.NewReader(`{"name": "p", "roles": [{"role": "small", "base_ms": 0, "per_decode_row_ms": 1, "per_prefill_token_ms": 1}]}`), "x.json"); err != nil {
		t.Error(err)
	}
}

// Names of coefficients and box are the JSON fields that they stand for.
func TestKeysAreFields(t *testing.T) {
	for f := range features {
		r := Row{Role: Small}
		*r.coef(f) = 1
		r.Box = &Box{}
		*r.Box.side(f) = &Range{1, 2}
		text, err := json.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"` + f.key() + `":1`, `"box":{"` + f.name() + `":[1,2]}`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", text, want)
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{A100R2R, Qwen3H100} {
		b.Run(name, func(b *testing.B) {
			p, err := Lookup(name)
			if err != nil {
				b.Fatal(err)
			}
			batch := Decoding(16, 600)
			var sum time.Duration
			b.ReportAllocs()
			for b.Loop() {
				sum += p.Step(2, &batch)
			}
			if sum == 0 {
				b.Fatal("steps take no time")
			}
		})
	}
}

func BenchmarkOutside(b *testing.B) {
	p := Profile{Rows: []Row{{Features: split, Box: &Box{
		DecodeRows: &Range{0, 64}, PrefillTokens: &Range{0, 9}, DecodeCtx: &Range{0, 1e6}, PrefillPairs: &Range{0, 9},
	}}}}
	batch := Decoding(16, 600)
	b.ReportAllocs()
	for b.Loop() {
		if p.Outside(0, &batch) {
			b.Fatal("outside")
		}
	}
}

// A fit of 100,000 batches, as a session of minutes has them.
func BenchmarkFitProfile(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	p, err := Lookup(Qwen3H100)
	if err != nil {
		b.Fatal(err)
	}
	samples := timed(rng, batches(rng, 100_000), p.Rows[0].ms, 0.01)
	for _, set := range []string{split, hinge} {
		b.Run(set, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := FitProfile("p", "", set, []Measured{{Role: Small, Samples: samples}}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
