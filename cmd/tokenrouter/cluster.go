package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tokenrouter/algos"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/runner/native"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting/library"
	"tokenrouter/sessions/store"
)

// cluster is a runtime with its models and its session, ready to start.
type cluster struct {
	models  []*model.Model
	runtime *live.Runtime
	session *store.Session // nil with --no-record
	seed    uint64
	seats   int
	guard   *guard.Guard
	lib     library.Library
	profile cost.Profile
}

// work is what a cluster is to do.
type work struct {
	source workload.Source
	limit  int    // requests, 0 without end
	name   string // problems, tasks
	file   string
	clock  string
	watch  bool // reload the router when its file changes
}

// build puts a cluster together; nothing runs yet. Errors of the flags come
// first, so that a wrong flag never leaves an empty session behind.
func (f *clusterFlags) build(w work) (*cluster, error) {
	if err := f.check(); err != nil {
		return nil, usage(err)
	}
	names, err := f.modelNames()
	if err != nil {
		return nil, usage(err)
	}
	params, err := f.params()
	if err != nil {
		return nil, usage(err)
	}
	policy, err := live.ParsePolicy(f.Batch, len(names))
	if err != nil {
		return nil, usage(err)
	}
	profile, err := f.profile(len(names))
	if err != nil {
		return nil, usage(err)
	}
	limit, err := f.sessionCap()
	if err != nil {
		return nil, usage(err)
	}
	c := &cluster{profile: profile, seed: f.Seed, seats: f.Seats}
	if c.models, err = loadModels(names); err != nil {
		return nil, usage(err)
	}
	pacer := paced.NewPacer()
	if w.clock == live.ClockPaced {
		pacer.SetProfile(&profile)
	}
	pacer.SetSpeed(f.Speed)
	c.lib = library.Library{Dir: f.Routers, Embedded: algos.Routers()}
	c.guard = guard.New(filepath.Join(os.TempDir(), "tokenrouter"))
	recording := tape.New()
	cfg := c.config(f, w)
	for i, m := range c.models {
		cfg.Runners = append(cfg.Runners, paced.New(native.NewWithBlocks(m, i, f.KVTokens/model.BlockLen), pacer, i))
		cfg.Domains = append(cfg.Domains, domain(m))
	}
	cfg.Pacer, cfg.Profile = pacer, &profile
	cfg.Policy, cfg.Params = policy, params
	cfg.Tape, cfg.Guard = recording, c.guard
	if c.runtime, err = live.New(cfg); err != nil {
		return nil, usage(err)
	}
	if f.NoRecord {
		return c, nil
	}
	dir := f.Sessions
	if dir == "" {
		if dir, err = store.DefaultDir(); err != nil {
			return nil, err
		}
	}
	c.session, err = store.Create(dir, c.manifest(f, w), store.Options{
		Vocab: vocabulary(c.models[0].Tokenizer), MaxBytes: limit,
		Go: func(fn func()) { c.guard.Go("session recorder", nil, fn) },
	})
	if err != nil {
		return nil, fmt.Errorf("%w, or run without a recording (--no-record)", err)
	}
	c.session.Record(recording)
	return c, nil
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

func (c *cluster) config(f *clusterFlags, w work) live.Config {
	front := c.models[0]
	tok := front.Tokenizer
	cfg := live.Config{
		Vocab: front.Config.Vocab,
		Prompt: func(q string) ([]event.Token, error) {
			return tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: q}})
		},
		TokenBytes: func(id event.Token) ([]byte, bool) { return tok.Bytes(id), tok.IsSpecial(id) },
		TokenText:  func(id event.Token) string { return string(tok.Bytes(id)) },
		EOS:        front.EOS(),
		Context:    front.Config.MaxPos,
		Seats:      f.Seats, KVTokens: f.KVTokens, MaxTokens: f.MaxTokens, Core: f.coreOptions(),
		Sampling: f.sampling(), Stops: f.Stop,
		Concurrency: f.Concurrency, Source: w.source, Limit: w.limit,
		Library: c.lib, Router: f.Router, Watch: w.watch,
	}
	for _, m := range c.models[1:] {
		cfg.Context = min(cfg.Context, m.Config.MaxPos)
	}
	return cfg
}

// domain tells the KV of one model and tokenizer from that of any other.
func domain(m *model.Model) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, m.Hash(), m.Tokenizer.Hash())
	return h.Sum64()
}

func (c *cluster) manifest(f *clusterFlags, w work) store.Manifest {
	st := c.runtime.Status()
	m := store.Manifest{
		Program: "tokenrouter " + version(), StartedAt: c.runtime.Started(),
		Router: store.Router{File: st.RouterFile, Path: st.RouterPath, Hash: st.RouterHash, Text: c.runtime.RouterText()},
		Params: map[string]float64{}, Seed: f.Seed, Policy: store.PolicyOf(&st.Policy),
		Clock: st.Clock, Profile: st.Profile, Speed: st.Speed, Concurrency: f.Concurrency,
		Seats: f.Seats, KVTokens: f.KVTokens, Core: storedCore(f.coreOptions()),
		Workload: store.Workload{Source: w.name, File: w.file, Requests: w.limit, MaxTokens: f.MaxTokens},
		Sampling: store.Sampling{TopK: f.TopK, TopP: f.TopP, Stops: f.Stop},
		Machine:  store.ThisMachine(),
	}
	if f.Temperature != nil {
		m.Sampling.Temperature = *f.Temperature
	}
	for _, k := range c.runtime.Knobs() {
		m.Params[k.Name] = k.Value
	}
	for i, md := range c.models {
		m.Models = append(m.Models, store.Model{
			Role: event.Role(event.Peer(i), len(c.models)), Name: md.Name, Hash: md.Hash(),
			Params: int64(md.Params()), Vocab: md.Tokenizer.Hash(),
		})
	}
	return m
}

func storedCore(o live.CoreOptions) store.Core {
	return store.Core{
		Chunk: o.Chunk, Budget: o.Budget, NoPrefix: o.NoPrefix, Overcommit: o.Overcommit, Timeout: int64(o.Timeout),
	}
}

func vocabulary(t *tokenizer.Tokenizer) [][]byte {
	out := make([][]byte, t.Size())
	for id := range out {
		out[id] = t.Bytes(event.Token(id))
	}
	return out
}

// closeTimeout bounds how long requests may take to end as aborted.
const closeTimeout = 900 * time.Millisecond

// close ends the runtime and the session; reason goes into the manifest.
func (c *cluster) close(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	err := c.runtime.Close(ctx)
	if c.session != nil {
		c.runtime.Tape().AppendHost(c.runtime.Now(), event.None, &tape.Closed{Reason: reason})
		err = errors.Join(err, c.session.Close(reason))
	}
	return err
}

// path is the session's folder, "" without one.
func (c *cluster) path() string {
	if c.session == nil {
		return ""
	}
	return c.session.Path()
}

// routerLabel is how a router is named in summaries: file@hash.
func routerLabel(file, hash string) string { return file + "@" + hash }

func modelList(models []*model.Model) []string {
	var out []string
	for _, m := range models {
		out = append(out, m.Name)
	}
	return out
}

func joinModels(models []*model.Model) string {
	var parts []string
	for i, m := range models {
		parts = append(parts, event.Role(event.Peer(i), len(models))+" "+m.Name)
	}
	return strings.Join(parts, " + ")
}

func paramText(params map[string]float64) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(params)) {
		fmt.Fprintf(&b, "  %s %g", k, params[k])
	}
	return b.String()
}

func endsText(ends map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(ends)) {
		if ends[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", ends[k], k))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// crashError says where the details of a panic are.
func crashError(c guard.Crash) error {
	if c.File == "" {
		return fmt.Errorf("%w; no crash file could be written (%s)\n%s", c, strings.Join(c.Nested, "; "), c.Stack)
	}
	return fmt.Errorf("%w; the session is closed and readable, details are in %s", c, c.File)
}
