package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"

	"tokenrouter/kernels/cpu"
	"tokenrouter/kernels/mem"
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/checkpoint"
	"tokenrouter/runtime/model/tokenizer"
)

// shelf is loaded models with the cores that compute them. Weights lie outside of
// the heap: they are given back by close, when no step runs any more.
type shelf struct {
	models  []*model.Model
	origins []origin
	kv      int // size of a KV pool in tokens where --kv-tokens does not say
	cores   *team.Cores
}

func (s *shelf) close() {
	for _, m := range s.models {
		m.Close()
	}
	s.cores.Close()
}

// own says that a model of the shelf is from disk.
func (s *shelf) own() bool { return fromDisk(s.origins) }

// available is the memory that can be had, a variable for the tests.
var available = mem.Available

// load loads the models that the flags name, unless a shelf has them already.
// All that can be wrong with them is found before the first one is loaded.
func (f *clusterFlags) load(g *guard.Guard) (*shelf, error) {
	if f.shelf != nil {
		return f.shelf, nil
	}
	plans, err := planLoad(f.origins)
	defer closePlans(plans)
	if err != nil {
		return nil, err
	}
	s := &shelf{origins: f.origins, kv: modelKVTokens}
	if s.own() {
		if s.kv, err = fits(plans, f.KVTokens); err != nil {
			return nil, err
		}
		if f.KVTokens == nil && s.kv < modelKVTokens {
			fmt.Fprintf(os.Stderr, "tokenrouter: KV pools have %d tokens, as there is no memory for %d\n", s.kv, modelKVTokens)
		}
	}
	if cpu.Current() == cpu.Go {
		fmt.Fprintln(os.Stderr, "tokenrouter:", slowKernels())
	}
	if n := f.threads(); n > team.Machine() {
		fmt.Fprintf(os.Stderr, "tokenrouter: this machine has %d CPUs: with --threads %d threads wait for each other, which is slower\n", team.Machine(), n)
	}
	ctx, stop := interruptible()
	defer stop()
	bar := newLoadBar(os.Stderr, "loading")
	for i := range plans {
		m, err := plans[i].load(ctx, g, roleOf(i, len(plans)), f.threads(), bar)
		if err != nil {
			for _, m := range s.models {
				m.Close()
			}
			return nil, err
		}
		s.models = append(s.models, m)
	}
	s.cores = team.New(f.threads())
	return s, nil
}

// slowKernels says that the machine has no kernels but those in plain Go.
func slowKernels() string {
	if cpu.Best() > cpu.Go {
		return fmt.Sprintf("kernels in plain Go, as %s asks for: some 40 to 60 times slower than those of this machine (%s)", cpu.Variable, cpu.Best())
	}
	return "kernels in plain Go, as there are none for this machine or build: some 40 to 60 times slower than with AVX2"
}

// loadPlan is a model that is about to be loaded.
type loadPlan struct {
	origin
	file   *checkpoint.Checkpoint
	tok    *tokenizer.Tokenizer
	params int64
	need   checkpoint.Need
}

// planLoad opens the models and holds them against each other: one vocabulary, small
// first.
func planLoad(origins []origin) ([]loadPlan, error) {
	plans := make([]loadPlan, 0, len(origins))
	for _, o := range origins {
		p, err := openPlan(o)
		if err != nil {
			return plans, err
		}
		plans = append(plans, p)
		if n := len(plans); n > 1 {
			if err := agree(&plans[n-2], &plans[n-1]); err != nil {
				return plans, err
			}
		}
	}
	return plans, nil
}

func openPlan(o origin) (p loadPlan, err error) {
	p.origin = o
	if p.file, err = o.open(); err != nil {
		return p, err
	}
	p.params = p.file.Config.Params()
	if p.tok, err = p.file.Tokenizer(); err == nil {
		p.need, err = p.file.Need(o.weights, o.kv)
	}
	if err != nil {
		err = errors.Join(err, p.file.Close())
		p.file = nil
	}
	return p, err
}

func closePlans(plans []loadPlan) {
	for i := range plans {
		if f := plans[i].file; f != nil {
			_ = f.Close() // it was read only
		}
	}
}

// agree refuses two neighbours that cannot write one answer together, or that
// stand in the wrong order.
func agree(a, b *loadPlan) error {
	if a.tok.Hash() != b.tok.Hash() {
		if id, what := a.tok.Diff(b.tok); id >= 0 { // else only unused rows follow
			return fmt.Errorf("%s and %s do not share a vocabulary, so they cannot write one answer together: %s", a.name, b.name, what)
		}
	}
	if b.params < a.params {
		return fmt.Errorf("%s (%s parameters) is given as the smaller one, and %s (%s) as the larger; name them small first", a.name, count(a.params), b.name, count(b.params))
	}
	return nil
}

// load reads the weights. Who does not want to wait for them ends ctx.
func (p *loadPlan) load(ctx context.Context, g *guard.Guard, role string, threads int, bar *loadBar) (*model.Model, error) {
	if p.embedded() { // it costs next to nothing
		return model.FromCheckpoint(p.file, model.Options{Format: p.weights, KV: p.kv, Threads: threads})
	}
	var m *model.Model
	file, done := p.file, make(chan error, 1)
	bar.begin(role + " " + p.name)
	g.Go("loading "+p.name, func(c guard.Crash) { done <- fellOver(c) }, func() {
		var err error
		m, err = model.FromCheckpoint(file, model.Options{Format: p.weights, KV: p.kv, Threads: threads, Progress: bar.at})
		done <- err
	})
	select {
	case <-ctx.Done():
		p.file = nil // it is still being read
		bar.clear()
		return nil, &exitError{exitInterrupted, fmt.Errorf("interrupted while %s was being loaded", p.name)}
	case err := <-done:
		bar.clear()
		if err == nil {
			bar.done(p.params, m)
		}
		return m, err
	}
}

// fellOver is a panic while nothing runs yet.
func fellOver(c guard.Crash) error {
	err := fmt.Errorf("%w; details are in %s", c, c.File)
	if c.File == "" {
		err = fmt.Errorf("%w\n%s", c, c.Stack)
	}
	return &exitError{exitFailed, err}
}

// Pools that are chosen where --kv-tokens does not say: powers of two, so that a
// little more or less free memory gives the same.
const leastKVTokens = 1024

// fits says how many tokens a KV pool has, the given number or as many as there is
// memory for. Models that do not fit with it are refused before anything of them
// is in memory.
func fits(plans []loadPlan, given *int) (kv int, err error) {
	var weights, perToken int64
	for i := range plans {
		weights += plans[i].need.Weights
		perToken += plans[i].need.KVToken
	}
	kv = modelKVTokens
	if given != nil {
		kv = *given
	}
	free, err := available()
	if err != nil || weights+perToken*int64(kv) <= free {
		return kv, nil // where it cannot be known, loading will tell
	}
	if most := (free - weights) / max(perToken, 1); given == nil && most >= leastKVTokens {
		return 1 << (bits.Len64(uint64(most)) - 1), nil
	}
	if given == nil {
		kv = leastKVTokens
	}
	return 0, fmt.Errorf("not enough memory: the models need %s (weights %s, KV pools of %d tokens %s), and %s can be had; take smaller ones, weights in fewer bits (--weights-format q4), or a smaller pool (--kv-tokens)",
		bytesText(weights+perToken*int64(kv)), bytesText(weights), kv, bytesText(perToken*int64(kv)), bytesText(free))
}

// prompt puts a question by the chat template of the first model that has one. To
// models that have none, which were not trained to chat, it is plain text.
func (s *shelf) prompt() func(question string) ([]event.Token, error) {
	for _, m := range s.models {
		if tok := m.Tokenizer; tok.Template() != "" {
			return func(q string) ([]event.Token, error) {
				return tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: q}})
			}
		}
	}
	tok := s.models[0].Tokenizer
	return func(q string) ([]event.Token, error) { return tok.Prompt(q), nil }
}

// endTokens are those that end an answer, of whichever model.
func (s *shelf) endTokens() (ids []int32) {
	for _, m := range s.models {
		ids = append(ids, m.EOS()...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rows is the number of ids that some model may write: its logits may have more
// rows than the vocabulary has tokens.
func (s *shelf) rows() (n int) {
	for _, m := range s.models {
		n = max(n, m.Config.Vocab, m.Tokenizer.Size())
	}
	return n
}

// drawn is the number of ids that every model may be fed, so may be drawn: rows
// behind the tokens of the vocabulary are no text, and a peer may not have them.
func (s *shelf) drawn() int {
	n := s.rows()
	for _, m := range s.models {
		n = min(n, m.Config.Vocab, m.Tokenizer.Size())
	}
	return n
}

// count is a large number as people say it.
func count(n int64) string {
	for _, u := range []struct {
		of   int64
		name string
	}{{1e9, " B"}, {1e6, " M"}, {1e3, " k"}} {
		if n >= u.of {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.of), u.name)
		}
	}
	return fmt.Sprint(n)
}

// bytesText is a size in decimal units, as files of models are sold by.
func bytesText(n int64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if x := float64(n) / u.of; x >= 1 {
			digits := 0
			if x < 100 {
				digits = 1
			}
			if x < 10 {
				digits = 2
			}
			return fmt.Sprintf("%.*f %s", digits, x, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// heldText says how a model is held in memory.
func heldText(weights, kv string) string {
	var parts []string
	if weights != "" {
		parts = append(parts, weights)
	}
	if kv != "" {
		parts = append(parts, "KV "+kv)
	}
	return cmp.Or(strings.Join(parts, ", "), "as stored")
}
