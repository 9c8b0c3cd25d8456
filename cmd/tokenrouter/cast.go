package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/runner/emulated"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/workload"
	"tokenrouter/sessions/store"
)

// cast is who writes the tokens: the embedded models, or what stands for models
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

	tasks   []workload.Task // of a recording
	lacks   []string        // what a recording does not have
	missing func() uint64   // answers that it did not have and that were drawn; nil elsewhere
}

// cast puts together who writes the tokens, and the cost profile with a row for
// each of them.
func (f *clusterFlags) cast() (c *cast, p cost.Profile, err error) {
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
	names, err := f.modelNames()
	if err != nil {
		return nil, p, err
	}
	if p, err = f.castProfile(names); err != nil {
		return nil, p, err
	}
	if f.modelled() {
		c, err = f.embedded(names)
	} else {
		c, err = f.drawn(&p)
	}
	return c, p, err
}

// embedded loads models that the program carries.
func (f *clusterFlags) embedded(names []string) (*cast, error) {
	models, err := loadModels(names)
	if err != nil {
		return nil, err
	}
	front := models[0]
	tok := front.Tokenizer
	c := &cast{
		vocab: vocabulary(tok), special: tok.IsSpecial, eos: front.EOS(), context: front.Config.MaxPos,
		prompt: func(q string) ([]event.Token, error) {
			return tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: q}})
		},
	}
	for i, m := range models {
		c.context = min(c.context, m.Config.MaxPos)
		c.runners = append(c.runners, native.NewWithBlocks(m, i, *f.KVTokens/model.BlockLen))
		c.models = append(c.models, store.Model{
			Role: event.Role(event.Peer(i), len(models)), Name: m.Name, Hash: m.Hash(),
			Params: int64(m.Params()), Vocab: m.Tokenizer.Hash(),
		})
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
	c := &cast{tokens: tokensDrawn, vocab: vocabulary(tok), special: tok.IsSpecial, context: drawnContext, kv: poolOf(p), prompt: readyPrompt}
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

// castProfile is the cost profile with a row per model. Names of drawn models
// are roles of its rows, or what these call their models.
func (f *clusterFlags) castProfile(names []string) (cost.Profile, error) {
	if f.modelled() {
		return f.profile(len(names), nil)
	}
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

// loadModels loads the models and refuses a pair that does not share one
// vocabulary.
func loadModels(names []string) ([]*model.Model, error) {
	var out []*model.Model
	for _, name := range names {
		m, err := tiny.Load(name)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 {
			if a, b := out[0].Tokenizer, m.Tokenizer; a.Hash() != b.Hash() {
				id, what := a.Diff(b)
				return nil, fmt.Errorf("%s and %s do not share a vocabulary, so they cannot write one answer together: token %d differs (%s)", out[0].Name, m.Name, id, what)
			}
			if m.Params() < out[len(out)-1].Params() {
				return nil, fmt.Errorf("--models gives %s after the larger %s; name them small first", m.Name, out[len(out)-1].Name)
			}
		}
		out = append(out, m)
	}
	return out, nil
}

func vocabulary(t *tokenizer.Tokenizer) [][]byte {
	out := make([][]byte, t.Size())
	for id := range out {
		out[id] = t.Bytes(event.Token(id))
	}
	return out
}
