package main

import (
	"cmp"
	"fmt"
	"os"

	"tokenrouter/algos/head"
	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
	"tokenrouter/sessions/store"
)

// headFlags say where trained heads are found.
type headFlags struct {
	Heads       string `default:"heads" placeholder:"DIR" help:"Folder of trained heads, for r.score(\"NAME\") in a router; the shipped ones stand behind them (default: ${default})."`
	HeadWeights string `placeholder:"FORMAT" help:"Hold the matrices of heads as f32, f16, bf16 or q8 (default: f32). A head of 55 million weights reads 220 MB for every token in f32."`
}

// library is the heads that routers may name.
func (f *headFlags) library() (*head.Library, error) {
	var o head.Options
	if f.HeadWeights != "" {
		var err error
		if o.Weights, err = matmul.ParseFormat(f.HeadWeights); err != nil || o.Weights == matmul.Q4 {
			return nil, fmt.Errorf("--head-weights %q is none of f32, f16, bf16, q8", f.HeadWeights)
		}
	}
	return head.NewLibrary(cmp.Or(f.Heads, "heads"), o), nil
}

// scorer makes what evaluates heads for the routers of a cast; nil where no model
// computes and none is repeated. Weights are shared by all subservers.
func (c *cluster) scorer(t *tape.Tape) func(event.Peer) scripting.Scorer {
	if h := c.cast.heads; h != nil {
		return func(p event.Peer) scripting.Scorer { return h.scorer(c.cast.models, p) }
	}
	if c.cast.shelf == nil {
		return nil
	}
	models := map[string]head.Model{}
	for i, m := range c.cast.shelf.models {
		models[c.cast.models[i].Role] = head.Model{Hash: m.Hash(), Hidden: m.Config.Hidden}
	}
	warn := func(text string) {
		if c.runtime == nil { // it is being built: there is no screen yet
			fmt.Fprintln(os.Stderr, "tokenrouter:", text)
			return
		}
		t.AppendHost(c.runtime.Now(), event.None, &tape.Message{Level: tape.Warn, Text: text})
	}
	return func(p event.Peer) scripting.Scorer {
		f, ok := runner.FeaturesOf(c.cast.runners[p])
		if !ok {
			return nil
		}
		return head.NewScorer(c.heads, c.cast.models[p].Role, models, f, warn)
	}
}

// usedHeads are those that the session has loaded, for its manifest.
func (c *cluster) usedHeads() (out []store.Head) {
	if h := c.cast.heads; h != nil {
		return h.heads()
	}
	if c.heads == nil {
		return nil
	}
	for _, h := range c.heads.Used() {
		m := h.Manifest()
		out = append(out, store.Head{
			Name: m.Name, Kind: m.Spec.Kind, Hash: h.Hash(), Weights: h.Format(), Meaning: m.Meaning,
			Threshold: m.Threshold, Share: m.Share, Data: m.Data,
		})
	}
	return out
}
