package cost

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// 6.0 and 27.9 ms a step, flat: the throughput model's paper point.
func TestA100R2R(t *testing.T) {
	p, err := Lookup(A100R2R)
	if err != nil {
		t.Fatal(err)
	}
	const small, middle, large = 6 * time.Millisecond, 12300 * time.Microsecond, 27900 * time.Microsecond
	for models, want := range map[int][]time.Duration{1: {small}, 2: {small, large}, 3: {small, middle, large}} {
		run, err := p.For(models)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Rows) != models || run.Name != A100R2R {
			t.Errorf("profile for %d models is %+v", models, run)
		}
		for m, d := range want {
			for _, batch := range [][2]int{{1, 0}, {8, 0}, {0, 500}, {32, 96}} {
				if got := run.Step(m, feeding(batch[0], batch[1])); got != d {
					t.Errorf("%d models: step of model %d with batch %v takes %v, want %v", models, m, batch, got, d)
				}
			}
		}
	}
	for _, models := range []int{0, 4, -1} {
		if _, err := p.For(models); err == nil || !strings.Contains(err.Error(), A100R2R) {
			t.Errorf("For(%d) gives %v", models, err)
		}
	}
}

func TestLookupUnknown(t *testing.T) {
	_, err := Lookup("h100")
	if want := `cost profile "h100" is unknown; built-in profiles: a100-r2r, qwen3-h100`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A caller that changes a profile changes its own copy.
func TestLookupGivesACopy(t *testing.T) {
	for _, name := range Names() {
		p, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check(); err != nil {
			t.Errorf("built-in profile is refused: %v", err)
		}
		p.Rows[0].Base = 1
		again, _ := Lookup(name)
		if again.Rows[0].Base == 1 {
			t.Errorf("profile %s is shared", name)
		}
	}
}

func TestReadAffine(t *testing.T) {
	p, err := Read(strings.NewReader(`{"name": "mine", "roles": [
		{"role": "large", "base_ms": 20, "per_decode_row_ms": 0.5, "per_prefill_token_ms": 0.01},
		{"role": "small", "base_ms": 0.0000015}]}`), "mine.json")
	if err != nil {
		t.Fatal(err)
	}
	run, err := p.For(2)
	if err != nil {
		t.Fatal(err)
	}
	if got := run.Step(1, feeding(4, 100)); got != 23*time.Millisecond {
		t.Errorf("20 + 4*0.5 + 100*0.01 ms is %v", got)
	}
	if got := run.Step(0, feeding(4, 100)); got != 2*time.Nanosecond {
		t.Errorf("1.5 ns is rounded to %v", got)
	}
	if _, err := p.For(3); err == nil || !strings.Contains(err.Error(), "middle") {
		t.Errorf("three models without a middle row: %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	row := func(s string) string { return `{"name": "p", "roles": [` + s + `]}` }
	for _, c := range []struct{ in, want string }{
		{"", "EOF"},
		{"[]", "cannot unmarshal array"},
		{row(`{"role": "small", "base_ms": 1}`) + "{}", "more text after the profile"},
		{`{"roles": [{"role": "small", "base_ms": 1}]}`, `"name" is missing`},
		{`{"name": "p"}`, `"roles" is empty`},
		{row(`{"role": "tiny", "base_ms": 1}`), `role "tiny" is unknown; roles are small, middle, large`},
		{row(`{"role": "small", "base_ms": 1}, {"role": "small", "base_ms": 2}`), "role small has two rows"},
		{row(`{"role": "small", "base": 1}`), `unknown field "base"`},
		{row(`{"role": "small"}`), "base_ms of small is missing or 0"},
		{row(`{"role": "small", "base_ms": -1}`), "base_ms of small is -1"},
		{row(`{"role": "small", "base_ms": 1, "per_decode_row_ms": 1e9}`), "per_decode_row_ms of small is 1e+09"},
		{row(`{"role": "small", "base_ms": 1, "per_prefill_token_ms": -0.1}`), "per_prefill_token_ms of small is -0.1"},
		{row(`{"role": "small", "base_ms": 1, "kv_tokens": 9000000000000000000}`), "kv_tokens is 9000000000000000000; give 1 to 100000000 tokens"},
		{row(`{"role": "small", "base_ms": 1, "tp": 1025}`), "tp is 1025; give 1 to 1024 devices"},
		{row(`{"role": "small", "base_ms": 1, "model": "a\u001b[31m"}`), `model "a\x1b[31m" has a character that cannot be printed`},
		{row(`{"role": "small", "base_ms": 1, "fit": {"zeroed": ["\u0007"]}}`), `zeroed of the fit "\a" has a character`},
		{`{"name": "a\nb", "roles": [{"role": "small", "base_ms": 1}]}`, `name "a\nb" has a character that cannot be printed`},
		{`{"name": "p", "source": "\u009b2J", "roles": [{"role": "small", "base_ms": 1}]}`, "source "},
		{strings.Repeat(" ", maxFile+1), "longer than 1048576 bytes"},
	} {
		_, err := Read(strings.NewReader(c.in), "x.json")
		if err == nil || !strings.HasPrefix(err.Error(), "cost profile x.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gives %v, want %s", c.in, err, c.want)
		}
	}
	if err := (&Profile{Name: "p", Rows: []Row{{Role: Small, Base: math.NaN()}}}).check(); err == nil {
		t.Error("NaN was accepted")
	}
	tiny, err := Read(strings.NewReader(row(`{"role": "small", "base_ms": 1e-300}`)), "x.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := tiny.Step(0, feeding(1, 0)); d <= 0 {
		t.Errorf("a step takes %v", d)
	}
	gone := errors.New("gone")
	if _, err := Read(iotest.ErrReader(gone), "x.json"); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

// Whatever is accepted survives its JSON form, and steps take time that never
// falls with the batch.
func TestProfileProperties(t *testing.T) {
	ms := rapid.Float64Range(0, maxMillis)
	rapid.Check(t, func(t *rapid.T) {
		p := Profile{Name: rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`).Draw(t, "name")}
		for _, role := range rolesOf[3] {
			p.Rows = append(p.Rows, Row{Role: role, Base: rapid.Float64Range(1e-9, maxMillis).Draw(t, "base"), PerDecodeRow: ms.Draw(t, "row"), PerPrefillToken: ms.Draw(t, "token")})
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Read(bytes.NewReader(text), "p.json")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatal(diff)
		}
		rows, tokens := rapid.IntRange(0, 256).Draw(t, "rows"), rapid.IntRange(0, 1024).Draw(t, "tokens")
		for m := range p.Rows {
			d := p.Step(m, feeding(rows, tokens))
			if d <= 0 || p.Step(m, feeding(rows+1, tokens)) < d || p.Step(m, feeding(rows, tokens+1)) < d {
				t.Fatalf("step of %+v with %d rows and %d tokens takes %v", p.Rows[m], rows, tokens, d)
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"name": "p", "source": "s", "roles": [{"role": "small", "base_ms": 6}, {"role": "large", "base_ms": 27.9}]}`))
	f.Add([]byte(`{"name": "p", "roles": [{"role": "small", "base_ms": 1e400}]}`))
	f.Add([]byte(`{"name": "p", "latency_ms": 1, "roles": [{"role": "small", "features": "hinge", "base_ms": 1, "hinge_tokens": 4,
		"per_token_beyond_ms": 3e6, "overhead_ms": 1, "box": {"tokens": [1, 2]}, "stalls": {"share": 0.5, "ms": [1, 2]}, "fit": {"zeroed": ["base_ms"]}}]}`))
	for _, p := range builtin() {
		var text bytes.Buffer
		if err := p.Write(&text); err != nil {
			f.Fatal(err)
		}
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := Read(bytes.NewReader(in), "f")
		if err != nil {
			return
		}
		var text bytes.Buffer
		if err := p.Write(&text); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(&text, "again"); err != nil {
			t.Fatalf("what was read is refused when written: %v", err)
		}
		long := Decoding(3, 1<<40)
		for _, b := range []*Batch{feeding(1, 1), feeding(0, 1), feeding(2000, 1_000_000), &long} {
			for m := range p.Rows {
				if p.Step(m, b) <= 0 || p.Overhead(m, b.Rows) < 0 || p.Latency() < 0 {
					t.Fatalf("negative time of %+v", p.Rows[m])
				}
				p.Outside(m, b)
			}
		}
	})
}

// feeding is a batch of rows that decode, beside one that feeds that many prompt
// tokens.
func feeding(rows, tokens int) *Batch {
	b := Decoding(rows, 0)
	if tokens > 0 {
		b.Add(tokens, 0, true)
	}
	return &b
}
