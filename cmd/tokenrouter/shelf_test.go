package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/workload"
)

// made writes a model of random weights that is smaller than any real one, with the
// tokenizer of the embedded ones, of which edit changes a text.
func made(t *testing.T, path string, layers int, edit ...string) string {
	t.Helper()
	tok := fstest.MapFS{}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := fs.ReadFile(tiny.Tokenizer(), name)
		if err != nil {
			t.Fatal(err)
		}
		tok[name] = &fstest.MapFile{Data: []byte(strings.NewReplacer(edit...).Replace(string(b)))}
	}
	shape := synth.Shape{
		Name: "few", Family: "qwen3", Layers: layers, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 96,
		Vocab: 512, MaxPos: 40960, RopeTheta: 1e6, Eps: 1e-6, Tied: true,
	}
	if err := synth.Write(path, shape, synth.Options{Tokenizer: tok, Seed: uint64(layers)}); err != nil {
		t.Fatal(err)
	}
	return path
}

// flagsFor are settled flags of a run without a session.
func flagsFor(t *testing.T, args ...string) *clusterFlags {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	f := &parsed(t, &runCmd{}, append([]string{"--clock=live", "--no-record", "--routers=" + t.TempDir()}, args...)...).clusterFlags
	if err := f.settle(); err != nil {
		t.Fatal(err)
	}
	return f
}

func ownPair(t *testing.T) (small, large string) {
	dir := t.TempDir()
	return made(t, filepath.Join(dir, "small.gguf"), 1), made(t, filepath.Join(dir, "large"), 2)
}

// withMemory lets the machine have so much memory.
func withMemory(t *testing.T, bytes int64, err error) {
	was := available
	available = func() (int64, error) { return bytes, err }
	t.Cleanup(func() { available = was })
}

// A pair of checkpoints in two containers becomes a cast: names, formats and hashes
// for the manifest, prompts by the template, end tokens, a context that the pool
// bounds.
func TestCastFromDisk(t *testing.T) {
	small, large := ownPair(t)
	f := flagsFor(t, "--small="+small, "--large="+large, "--kv-tokens=1000")
	c, err := f.build(work{limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := c.cast.shelf
	m := c.cast.models
	if m[0].Name != "small" || m[1].Name != "large" || m[0].Path != small || m[0].Weights != "q8" || m[1].Weights != "bf16" || m[0].KV != "f16" || m[0].Hash == m[1].Hash || len(m[0].Hash) != 64 {
		t.Errorf("models %+v", m)
	}
	if c.cast.context != 992 { // whole blocks of 16
		t.Errorf("context %d", c.cast.context)
	}
	if len(c.cast.vocab) != 512 || len(c.cast.vocab[511]) != 0 {
		t.Errorf("%d ids, the last is %q", len(c.cast.vocab), c.cast.vocab[511])
	}
	ids, err := c.cast.prompt("Hi")
	want, err2 := s.models[0].Tokenizer.EncodeChat([]tokenizer.Message{{Role: "user", Content: "Hi"}})
	if err != nil || err2 != nil || !slices.Equal(ids, want) {
		t.Errorf("prompt %v, %v, want %v, %v", ids, err, want, err2)
	}
	if !slices.Equal(c.cast.eos, s.endTokens()) || !slices.Contains(c.cast.eos, s.models[1].EOS()[0]) {
		t.Errorf("end tokens %v", c.cast.eos)
	}
	src, err := f.source(c.cast, nil)
	if err != nil {
		t.Fatal(err)
	}
	if task, _ := src.Next(); !strings.HasSuffix(task.Question, howToAnswer) || !task.HasAnswer {
		t.Errorf("the first task is %+v", task)
	}
	if err := c.close(t.Context(), "done"); err != nil {
		t.Error(err)
	}
}

// Models from disk write to the end that the flags set, by both writers, and are
// given back; a pool that bounds the context ends requests by their length.
func TestRunFromDisk(t *testing.T) {
	small, large := ownPair(t)
	for name, c := range map[string]struct {
		args   []string
		tokens int // of every request, 0: any
	}{
		"max tokens": {[]string{"--max-tokens=9", "--router=random", "--param=share=0.5"}, 9},
		"pool":       {[]string{"--kv-tokens=128", "--threads=1", "--weights-format=f32"}, 0},
	} {
		f := flagsFor(t, append([]string{"--small=" + small, "--large=" + large}, c.args...)...)
		cl, err := f.build(work{limit: 4})
		if err != nil {
			t.Fatal(name, err)
		}
		d, err := cl.drive(t.Context(), drive{})
		if err = errors.Join(err, d.failure("")); err != nil {
			t.Fatal(name, err)
		}
		s := &d.summary
		if s.Ends["length"] != 4 || s.Requests != 4 || c.tokens > 0 && s.Tokens != 4*c.tokens || s.LargeTokens == 0 {
			t.Errorf("%s: %d tokens, %d of the large model, ends %v", name, s.Tokens, s.LargeTokens, s.Ends)
		}
	}
}

// Models that cannot write one answer together are refused before weights are
// read, with the first id that differs.
func TestVocabulariesDiffer(t *testing.T) {
	dir := t.TempDir()
	small := made(t, filepath.Join(dir, "small.gguf"), 1)
	large := made(t, filepath.Join(dir, "large.gguf"), 2, `\u003cthink`, `\u003cthunk`)
	id, _ := mustLoad(t, small).Tokenizer.ID("<think>")
	f := flagsFor(t, "--small="+small, "--large="+large)
	_, err := f.build(work{limit: 1})
	want := "small and large do not share a vocabulary, so they cannot write one answer together: token " + strconv.Itoa(int(id)) + " is "
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitUsage || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "<thunk>") {
		t.Errorf("%v, want %s", err, want)
	}
}

// What does not fit is refused with both numbers before anything is loaded; where
// nobody says how large the pools are to be, they are as large as there is memory.
func TestMemory(t *testing.T) {
	small, large := ownPair(t)
	f := flagsFor(t, "--small="+small, "--large="+large)
	plans, err := planLoad(f.origins)
	if err != nil {
		t.Fatal(err)
	}
	defer closePlans(plans)
	var weights, perToken int64
	for i := range plans {
		weights += plans[i].need.Weights
		perToken += plans[i].need.KVToken
	}
	if perToken != (1+2)*2*16*2*2 {
		t.Errorf("%d bytes a token", perToken)
	}
	unknown := errors.New("nobody knows")
	for _, c := range []struct {
		free  int64
		err   error
		given int // 0: not
		want  int // 0: refused
	}{
		{weights + perToken*modelKVTokens, nil, 0, modelKVTokens},
		{weights + perToken*modelKVTokens - 1, nil, 0, modelKVTokens / 2},
		{weights + perToken*5000, nil, 0, 4096},
		{weights + perToken*1024, nil, 0, 1024},
		{weights + perToken*1024 - 1, nil, 0, 0},
		{weights / 2, nil, 0, 0},
		{weights + perToken*5000, nil, 5000, 5000},
		{weights + perToken*5000 - 1, nil, 5000, 0},
		{0, unknown, 0, modelKVTokens},
	} {
		withMemory(t, c.free, c.err)
		var given *int
		if c.given > 0 {
			given = &c.given
		}
		kv, err := fits(plans, given)
		switch {
		case c.want > 0 && (err != nil || kv != c.want):
			t.Errorf("%d bytes: %d, %v, want %d", c.free, kv, err, c.want)
		case c.want == 0 && (err == nil || !strings.Contains(err.Error(), bytesText(c.free)+" can be had") || !strings.Contains(err.Error(), "weights "+bytesText(weights))):
			t.Errorf("%d bytes: %d, %v", c.free, kv, err)
		}
	}
	withMemory(t, 1000, nil)
	if _, err := f.build(work{limit: 1}); err == nil || !strings.Contains(err.Error(), "not enough memory") {
		t.Errorf("it is built: %v", err)
	}
}

// An architecture that is not known is refused by its name with those that are, a
// file that is cut short by what is missing.
func TestUnusableCheckpoints(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(made(t, filepath.Join(dir, "whole.gguf"), 1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"mamba": {bytes.Replace(whole, []byte("qwen3"), []byte("mamba"), 1), `"mamba" is not supported: choose a model of qwen3, qwen2, llama`},
		"cut":   {whole[:len(whole)/2], "cut.gguf"},
	} {
		path := filepath.Join(dir, name+".gguf")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := flagsFor(t, "--small="+path, "--large="+path).build(work{limit: 1})
		if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitUsage || !strings.Contains(err.Error(), c.want) || !strings.HasSuffix(err.Error(), offer) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A router that cannot work is found before models are loaded.
func TestWrongRouterBeforeLoading(t *testing.T) {
	small, large := ownPair(t)
	withMemory(t, 0, nil) // would refuse to load anything
	router := filepath.Join(t.TempDir(), "broken.lua")
	if err := os.WriteFile(router, []byte("function route(r)\n return STAY +\nend"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"--router=" + router: "broken.lua:3:",
		"--router=r3r":       "r3r",
		"--batch=fixed:1":    "1 thresholds for 2 models",
		"--arrivals=often":   "often",
		"--param=x=much":     "is not a number",
	} {
		_, err := flagsFor(t, "--small="+small, "--large="+large, flag).build(work{limit: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// An interrupt ends loading at once, with the exit code of one.
func TestInterruptedLoading(t *testing.T) {
	small, large := ownPair(t)
	plans, err := planLoad(flagsFor(t, "--small="+small, "--large="+large).origins)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	bar := &loadBar{out: &out, doing: "loading", live: liveLine{w: &out}, now: time.Now}
	_, err = plans[0].load(ctx, guard.New(t.TempDir()), "small", 1, bar)
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitInterrupted {
		t.Fatalf("it ends with %v", err)
	}
	if plans[0].file != nil {
		t.Error("a file that may still be read would be closed")
	}
	closePlans(plans)
}

// A panic while a model is loaded is an error that says where the details are.
func TestLoadingFallsOver(t *testing.T) {
	small, large := ownPair(t)
	plans, err := planLoad(flagsFor(t, "--small="+small, "--large="+large).origins)
	if err != nil {
		t.Fatal(err)
	}
	defer closePlans(plans)
	bar := &loadBar{out: io.Discard, doing: "loading", now: time.Now}
	plans[1].weights = "q9" // an error, before
	if m, err := plans[1].load(t.Context(), guard.New(t.TempDir()), "large", 1, bar); err == nil || m != nil {
		t.Errorf("q9: %v, %v", m, err)
	}
	whole := plans[0].file
	plans[0].file = nil
	dir := t.TempDir()
	_, err = plans[0].load(t.Context(), guard.New(dir), "small", 1, bar)
	plans[0].file = whole
	if e, ok := errors.AsType[*exitError](err); !ok || e.code != exitFailed || !strings.Contains(err.Error(), "loading small panicked") || !strings.Contains(err.Error(), dir) {
		t.Errorf("it ends with %v", err)
	}
}

// The checkpoint's own settings say how tokens are drawn, unless a flag does.
func TestSamplingOfCheckpoint(t *testing.T) {
	g := &checkpoint.Generation{DoSample: true, Temperature: 0.6, TopK: 20, TopP: 0.95}
	for _, c := range []struct {
		args string
		of   *checkpoint.Generation
		want event.Sampling
	}{
		{"", nil, event.Sampling{TopP: 1}},
		{"", &checkpoint.Generation{Temperature: 0.6}, event.Sampling{TopP: 1}},
		{"", g, event.Sampling{Temperature: 0.6, TopK: 20, TopP: 0.95}},
		{"", &checkpoint.Generation{DoSample: true}, event.Sampling{Temperature: 1, TopP: 1}},
		{"--greedy", g, event.Sampling{TopP: 1}},
		{"--temperature=0", g, event.Sampling{TopP: 1}},
		{"--temperature=0.9", g, event.Sampling{Temperature: 0.9, TopP: 1}},
		{"--top-k=5", g, event.Sampling{Temperature: 0.6, TopK: 5, TopP: 0.95}},
	} {
		f := &parsed(t, &runCmd{}, strings.Fields(c.args)...).clusterFlags
		f.follow(c.of)
		c.want.Seed = 1
		if got := f.sampling(); got != c.want {
			t.Errorf("%q of %+v: %+v, want %+v", c.args, c.of, got, c.want)
		}
	}
}

// Where nothing marks the end of a thought no answer can be found, and none is
// counted as wrong; a next turn is asked like the first.
func TestPosed(t *testing.T) {
	stories, err := workload.NewPreset(workload.PresetMultiTurn, 7)
	if err != nil {
		t.Fatal(err)
	}
	a := &posed{Source: stories, how: howToAnswer, silent: true}
	first, _ := a.Next()
	next, more := a.Follow(first, nil)
	for _, task := range []workload.Task{first, next} {
		if !strings.HasSuffix(task.Question, "?"+howToAnswer) || task.HasAnswer || task.Answer != "" {
			t.Errorf("%+v", task)
		}
	}
	if !more || next.Turn != 1 {
		t.Errorf("the next turn is %+v", next)
	}
	list := &posed{Source: workload.NewList([]workload.Task{{Question: "q", Answer: "1", HasAnswer: true}})}
	if task, ok := list.Next(); !ok || task.Question != "q" || !task.HasAnswer {
		t.Errorf("%+v", task)
	}
	if _, more := list.Follow(workload.Task{}, nil); more {
		t.Error("a list has a next turn")
	}
	anywhere, err := workload.NewCheck(workload.Rules{Answers: []string{"1"}, Extract: "text"})
	if err != nil {
		t.Fatal(err)
	}
	forms := &posed{how: howToAnswer, silent: true, Source: workload.NewList([]workload.Task{
		{Question: "What time is it?", Form: "09:45", Answer: "10:00", HasAnswer: true},
		{Question: "q", Answer: "1", HasAnswer: true, Check: anywhere},
	})}
	if task, _ := forms.Next(); task.Question != "What time is it? Answer in the form 09:45 alone, without any other words." || task.HasAnswer {
		t.Errorf("%+v", task)
	}
	if task, _ := forms.Next(); !task.HasAnswer || task.Answer != "1" {
		t.Errorf("an answer that needs no thought: %+v", task)
	}
}

func mustLoad(t *testing.T, path string) *model.Model {
	t.Helper()
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}
