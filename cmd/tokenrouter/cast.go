package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/emulated"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/workload"
	"tokenrouter/sessions/store"
)

// cast is who writes the tokens: models that compute, or what stands for models
// that are not here.
type cast struct {
	tokens  string        // drawn, or the session that is repeated; "" where models compute
	models  []store.Model // small first
	runners []runner.Runner
	vocab   [][]byte // bytes of every token
	special func(event.Token) bool
	prompt  func(question string) ([]event.Token, error)
	eos     []event.Token // none where texts are as long as tasks say
	context int           // positions that every model holds
	kv      int           // size of a KV pool where --kv-tokens does not say

	shelf      *shelf                                                 // of models that compute; nil elsewhere
	generation *model.Generation                                      // how the front's checkpoint wants to be sampled; nil: greedy
	ask        func(from workload.Source, how string) workload.Source // puts requests to models from disk; nil: as they are

	// Of a recording; nil elsewhere.
	said  *emulated.Recording
	heads *recordedHeads
	tasks []workload.Task
	lacks []string // what it does not have
}

// cast puts together who writes the tokens, and the cost profile with a row for
// each of them. Goroutines that load models run under g.
func (f *clusterFlags) cast(g *guard.Guard) (c *cast, p cost.Profile, err error) {
	if f.ready != nil {
		p, err = f.profile(len(f.ready.models), nil)
		return f.ready, p, err
	}
	if f.recording() {
		if c, err = f.recorded(); err != nil {
			return nil, p, err
		}
		if n := len(c.models); f.models > 0 && f.models != n {
			return nil, p, fmt.Errorf("%s is of %d models, --tokens %s has %d", f.given()[0], f.models, f.Tokens, n)
		}
		p, err = f.profile(len(c.models), nil)
		return c, p, err
	}
	if f.modelled() {
		if err = f.count(len(f.origins), f.flag()); err != nil {
			return nil, p, err
		}
		if p, err = f.profile(len(f.origins), nil); err != nil {
			return nil, p, err
		}
		c, err = f.computing(g)
		return c, p, err
	}
	names := splitNames(f.Models)
	if err = cmp.Or(twoOrThree("--models", names, "roles or models of --profile"), f.count(len(names), fmt.Sprintf("--models %q", f.Models))); err != nil {
		return nil, p, err
	}
	if p, err = f.drawnProfile(names); err != nil {
		return nil, p, err
	}
	c, err = f.drawn(&p)
	return c, p, err
}

// computing is a cast of models that are here.
func (f *clusterFlags) computing(g *guard.Guard) (*cast, error) {
	s, err := f.load(g)
	if err != nil {
		return nil, err
	}
	kv := s.kv
	if f.KVTokens != nil {
		kv = *f.KVTokens
	}
	tok := s.models[0].Tokenizer
	c := &cast{
		shelf: s, vocab: vocabulary(tok, s.rows()), special: tok.IsSpecial, eos: s.endTokens(), kv: kv,
		prompt: s.prompt(),
	}
	c.context = s.models[0].Config.MaxPos
	drawn := s.drawn()
	for i, m := range s.models {
		c.context = min(c.context, m.Config.MaxPos)
		c.runners = append(c.runners, native.NewWith(m, i, native.Options{Blocks: kv / model.BlockLen, Cores: s.cores, Vocab: drawn}))
		o := &s.origins[i]
		c.models = append(c.models, store.Model{
			Role: roleOf(i, len(s.models)), Name: o.name, Hash: m.Hash(), Params: int64(m.Params()), Vocab: m.Tokenizer.Hash(),
			Path: o.path, Weights: m.Format(), KV: m.KVFormat(),
		})
	}
	if s.own() {
		c.generation = &s.models[0].Generation
		_, thinks := tok.ID("</think>")
		c.ask = func(from workload.Source, how string) workload.Source {
			return &posed{Source: from, how: how, silent: !thinks}
		}
		// A model may hold more positions than there is KV for: a request then ends
		// where its pool does, which is better than to be refused for what it might
		// have written.
		c.context = min(c.context, kv/model.BlockLen*model.BlockLen)
	}
	return c, nil
}

// drawn is a cast that says what a law draws. Tokens have the texts of the
// embedded vocabulary, so that there is something to look at.
func (f *clusterFlags) drawn(p *cost.Profile) (*cast, error) {
	small, err := tiny.Load(tiny.Names()[0])
	if err != nil {
		return nil, err
	}
	tok := small.Tokenizer
	c := &cast{tokens: tokensDrawn, vocab: vocabulary(tok, tok.Size()), special: tok.IsSpecial, context: drawnContext, kv: poolOf(p), prompt: readyPrompt}
	law, err := emulated.NewLaw(f.Seed, emulated.Printable(len(c.vocab), func(id event.Token) ([]byte, bool) { return tok.Bytes(id), tok.IsSpecial(id) }, small.EOS()), len(p.Rows))
	if err != nil {
		return nil, err
	}
	for i, row := range p.Rows {
		role := event.Role(event.Peer(i), len(p.Rows))
		c.runners = append(c.runners, emulated.New(law, i))
		c.models = append(c.models, store.Model{Role: role, Name: cmp.Or(row.Model, p.Name), Hash: "drawn/" + role, Vocab: tok.Hash()})
	}
	return c, nil
}

// readyPrompt is of workloads whose tasks bring their tokens along.
func readyPrompt(string) ([]event.Token, error) {
	return nil, errors.New("drawn tokens answer prompts of tokens, not questions; give --tokens models")
}

// drawnProfile is the cost profile with a row per drawn model. Names are roles of
// its rows, or what these call their models.
func (f *clusterFlags) drawnProfile(names []string) (cost.Profile, error) {
	return f.profile(len(names), func(p *cost.Profile) error {
		var rows []cost.Row
		for _, name := range names {
			i := slices.IndexFunc(p.Rows, func(r cost.Row) bool { return r.Role == name || r.Model == name })
			if i < 0 {
				var known []string
				for _, r := range p.Rows {
					known = append(known, r.Role)
					if r.Model != "" {
						known = append(known, r.Model)
					}
				}
				return fmt.Errorf("cost profile %s has no %s, which --models asks for; it has %s", p.Name, name, strings.Join(known, ", "))
			}
			row := p.Rows[i]
			row.Role = event.Role(event.Peer(len(rows)), len(names))
			rows = append(rows, row)
		}
		p.Rows = rows
		return nil
	})
}

// poolOf is the size of a KV pool where --kv-tokens does not say: that of the
// smallest one in the profile, as all subservers have the same.
func poolOf(p *cost.Profile) int {
	n := 0
	for _, r := range p.Rows {
		if r.KVTokens > 0 && (n == 0 || r.KVTokens < n) {
			n = r.KVTokens
		}
	}
	if n == 0 {
		n = drawnKVTokens
	}
	return n / model.BlockLen * model.BlockLen
}

// vocabulary is the bytes of so many ids; those behind the tokens have none.
func vocabulary(t *tokenizer.Tokenizer, rows int) [][]byte {
	out := make([][]byte, rows)
	for id := range min(rows, t.Size()) {
		out[id] = t.Bytes(event.Token(id))
	}
	return out
}
