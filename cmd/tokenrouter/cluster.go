package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tokenrouter/algos"
	"tokenrouter/algos/head"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/runner/paced"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
	"tokenrouter/sessions/store"
)

// cluster is a runtime with who writes its tokens and its session, ready to
// start.
type cluster struct {
	cast    *cast
	runtime *live.Runtime
	session *store.Session // nil with --no-record
	flags   *clusterFlags  // settled
	guard   *guard.Guard
	lib     library.Library
	heads   *head.Library
	profile cost.Profile
}

// work is what a cluster is to do.
type work struct {
	source  workload.Source // nil: the one of the flags
	limit   int             // requests, 0 without end
	horizon time.Duration   // of session time, 0 without end
	file    string          // of tasks
	watch   bool            // reload the router when its file changes
	again   bool            // the same cast has been built before, and what it lacks was said
}

// build puts a cluster together; nothing runs yet. Errors of the flags come
// first, so that a wrong flag never leaves an empty session behind.
func (f *clusterFlags) build(w work) (*cluster, error) {
	if err := f.settle(); err != nil {
		return nil, usage(err)
	}
	limit, err := f.sessionCap()
	if err != nil {
		return nil, usage(err)
	}
	c := &cluster{flags: f, guard: guard.New(crashFolder())}
	c.lib = library.Library{Dir: f.Routers, Embedded: algos.Routers()}
	if c.heads, err = f.library(); err != nil {
		return nil, usage(err)
	}
	if fromDisk(f.origins) {
		if err := c.early(); err != nil {
			return nil, usage(err)
		}
	}
	if c.cast, c.profile, err = f.cast(c.guard); err != nil {
		return nil, usage(err)
	}
	if err := c.assemble(w, limit); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// early finds what is wrong with router and load before models are loaded, which
// may take a while. Who asks again gets the same answers.
func (c *cluster) early() error {
	f, n := c.flags, len(c.flags.origins)
	_, check := f.checker()
	_, params := f.params()
	_, arrivals := f.arrivals()
	_, policy := live.ParsePolicy(f.Batch, n)
	_, contention := f.contention(n)
	if err := cmp.Or(check, params, arrivals, policy, contention); err != nil {
		return err
	}
	path, text, embedded, err := c.lib.Resolve(f.Router)
	if err != nil || embedded {
		return err
	}
	_, err = scripting.Compile(path, text)
	return err
}

// assemble makes the runtime and its session.
func (c *cluster) assemble(w work, limit int64) (err error) {
	f := c.flags
	f.follow(c.cast.generation)
	if !w.again {
		for _, text := range c.cast.lacks {
			fmt.Fprintln(os.Stderr, "tokenrouter:", text)
		}
	}
	if f.KVTokens == nil {
		f.KVTokens = &c.cast.kv
		if err = f.checkPool(); err != nil { // a profile or a session may say anything
			return usage(err)
		}
	}
	cfg, err := c.config(w)
	if err != nil {
		return usage(err)
	}
	if c.runtime, err = live.New(cfg); err != nil {
		return usage(err)
	}
	if f.NoRecord {
		return nil
	}
	dir, err := sessionsDir(f.Sessions)
	if err != nil {
		return err
	}
	c.session, err = store.Create(dir, c.manifest(w), store.Options{
		Vocab: c.cast.vocab, MaxBytes: limit, Steady: f.virtual() && *f.Speed == 0 && !w.watch,
		Go: func(fn func()) { c.guard.Go("session recorder", nil, fn) },
	})
	if err != nil {
		return fmt.Errorf("%w, or run without a recording (--no-record)", err)
	}
	c.session.Record(cfg.Tape)
	return nil
}

// release gives the models back, unless others use them too.
func (c *cluster) release() {
	if s := c.cast.shelf; s != nil && s != c.flags.shelf {
		s.close()
	}
}

// config is the runtime's.
func (c *cluster) config(w work) (live.Config, error) {
	f, n := c.flags, len(c.cast.models)
	cfg := live.Config{
		Vocab: len(c.cast.vocab), Prompt: c.cast.prompt, TokenBytes: c.bytes,
		TokenText: func(id event.Token) string { return string(c.text(id)) },
		EOS:       c.cast.eos, Context: c.cast.context,
		Seats: f.Seats, KVTokens: *f.KVTokens, MaxTokens: f.maxNew, Core: f.coreOptions(),
		Sampling: f.sampling(), Stops: f.Stop,
		Concurrency: f.Concurrency, Source: w.source, Limit: w.limit, Horizon: w.horizon,
		Library: c.lib, Router: f.Router, Watch: w.watch,
		Profile: &c.profile,
		Tape:    tape.New(), Guard: c.guard, Pacer: paced.NewPacer(),
	}
	cfg.Scorer = c.scorer(cfg.Tape)
	var err error
	if cfg.Arrivals, err = f.arrivals(); err != nil {
		return cfg, err
	}
	switch {
	case cfg.Source == nil:
		if cfg.Source, err = f.source(c.cast, cfg.Arrivals); err != nil {
			return cfg, err
		}
	case c.cast.ask != nil:
		cfg.Source = c.cast.ask(cfg.Source, "") // the tasks say themselves how
	}
	if cfg.Check, err = f.checker(); err != nil {
		return cfg, err
	}
	if p, ok := cfg.Source.(*posed); ok && cfg.Check != nil {
		p.silent = false // the checker finds answers where it likes
	}
	if cfg.Params, err = f.params(); err != nil {
		return cfg, err
	}
	if cfg.Policy, err = live.ParsePolicy(f.Batch, n); err != nil {
		return cfg, err
	}
	if cfg.Contention, err = f.contention(n); err != nil {
		return cfg, err
	}
	cfg.Jitter, cfg.Unseen = f.Jitter, f.unseen
	cfg.Virtual, cfg.Emulated = f.virtual(), f.Clock == live.ClockEmulated
	if f.Clock == live.ClockPaced || f.Clock == live.ClockEmulated {
		cfg.Pacer.SetProfile(&c.profile)
	}
	cfg.Pacer.SetSpeed(*f.Speed)
	for i, r := range c.cast.runners {
		if !f.virtual() { // in virtual time nobody waits
			r = paced.New(r, cfg.Pacer, i)
		}
		cfg.Runners = append(cfg.Runners, r)
		cfg.Domains = append(cfg.Domains, c.cast.models[i].Domain())
	}
	return cfg, nil
}

// text is the bytes of a token, none of one that is not known.
func (c *cluster) text(id event.Token) []byte {
	if id < 0 || int(id) >= len(c.cast.vocab) {
		return nil
	}
	return c.cast.vocab[id]
}

func (c *cluster) bytes(id event.Token) ([]byte, bool) { return c.text(id), c.cast.special(id) }

func (c *cluster) manifest(w work) store.Manifest {
	st, f := c.runtime.Status(), c.flags
	m := store.Manifest{
		Program: "tokenrouter " + version(), StartedAt: c.runtime.Started(), Models: c.cast.models, Tokens: c.cast.tokens,
		Router: store.Router{File: st.RouterFile, Path: st.RouterPath, Hash: st.RouterHash, Text: c.runtime.RouterText()},
		Params: map[string]float64{}, Heads: c.usedHeads(), Seed: f.Seed, Policy: store.PolicyOf(&st.Policy),
		Clock: st.Clock, Profile: st.Profile, Speed: st.Speed, Concurrency: f.Concurrency,
		Seats: f.Seats, KVTokens: *f.KVTokens, Core: storedCore(f.coreOptions()),
		Workload: store.Workload{Source: f.Workload, File: w.file, Requests: w.limit, MaxTokens: f.maxNew},
		Sampling: store.Sampling{TopK: f.TopK, TopP: f.TopP, Stops: f.Stop},
		Machine:  store.ThisMachine(),
	}
	if c.cast.shelf != nil {
		m.Machine.Threads = f.threads()
	}
	if st.Profile != "" {
		m.Cost, m.Contention, m.Jitter = &c.profile, f.Contention, f.Jitter
	}
	if f.Arrivals != closedLoop {
		m.Workload.Arrivals = f.Arrivals
	}
	if w.file != "" {
		m.Workload.Source = "tasks"
	}
	if f.Temperature != nil {
		m.Sampling.Temperature = *f.Temperature
	}
	for _, k := range c.runtime.Knobs() {
		m.Params[k.Name] = k.Value
	}
	return m
}

func storedCore(o live.CoreOptions) store.Core {
	return store.Core{
		Chunk: o.Chunk, Budget: o.Budget, NoPrefix: o.NoPrefix, Overcommit: o.Overcommit, Timeout: int64(o.Timeout),
		MaxActive: o.MaxActive, Resubmit: o.Resubmit, Block: model.BlockLen,
	}
}

// How long requests may take to end as aborted. A step of a model from disk may
// take seconds. In virtual time without a screen nobody waits, and what is under
// way ends as it always does.
const (
	closeTimeout    = 900 * time.Millisecond
	closeOwnTimeout = 10 * time.Second
	drainTimeout    = time.Minute
)

// timeout is how long closing may take.
func (c *cluster) timeout() time.Duration {
	if s := c.cast.shelf; s != nil && s.own() {
		return closeOwnTimeout
	}
	return closeTimeout
}

// close ends the runtime and the session; reason goes into the manifest.
func (c *cluster) close(ctx context.Context, reason string) error {
	return c.closeWithin(ctx, c.timeout(), reason)
}

func (c *cluster) closeWithin(ctx context.Context, within time.Duration, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := c.runtime.Close(ctx)
	if err == nil { // else a step may still be reading weights
		c.release()
	}
	if c.session != nil {
		c.runtime.Tape().AppendHost(c.runtime.Now(), event.None, &tape.Closed{Reason: reason})
		c.session.SetHeads(c.usedHeads())
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

// names are the models', small first.
func (c *cluster) names() (out []string) {
	for _, m := range c.cast.models {
		out = append(out, m.Name)
	}
	return out
}

// roles names the models with their roles.
func (c *cluster) roles() string {
	var parts []string
	for _, m := range c.cast.models {
		parts = append(parts, m.Role+" "+m.Name)
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

// crashFolder is where crash files go.
func crashFolder() string { return filepath.Join(os.TempDir(), "tokenrouter") }

// crashError says where the details of a panic are.
func crashError(c guard.Crash) error {
	if c.File == "" {
		return fmt.Errorf("%w; no crash file could be written (%s)\n%s", c, strings.Join(c.Nested, "; "), c.Stack)
	}
	return fmt.Errorf("%w; the session is closed and readable, details are in %s", c, c.File)
}
