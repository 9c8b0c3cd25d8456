package live

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
	"tokenrouter/scripting/library"
	"tokenrouter/scripting/reload"
)

// SetRouter loads another router by name or file; each subserver swaps before
// its next route. A broken one is an error and changes nothing.
func (r *Runtime) SetRouter(nameOrPath string) error {
	c := &r.ctl
	c.loading.Lock()
	defer c.loading.Unlock()
	p, err := c.resolve(nameOrPath)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("the run has ended; start another one to use the router " + p.File)
	}
	c.adopt(p)
	c.watch()
	return nil
}

// Edit gives the path of a file that may be edited to change the router that is
// live. An embedded router is copied to the routers' folder first.
func (r *Runtime) Edit() (string, error) {
	p := r.ctl.current()
	if p.Path != "" {
		return p.Path, nil
	}
	path, err := r.cfg.Library.CopyForEdit(p.File)
	if err != nil {
		return "", err
	}
	return path, r.SetRouter(path)
}

// adopt makes p the router: knobs first, so that the first decision of p sees
// its own, then the swap.
func (c *control) adopt(p *scripting.Program) {
	c.rt.host(event.None, &tape.Router{Phase: tape.RouterLoaded, File: p.File, Path: p.Path, Hash: p.Hash, Text: p.Text})
	for _, k := range c.knobs.Declare(p) {
		c.rt.host(event.None, &k)
	}
	c.keep(p)
	c.swapTo(p)
	c.clear(p)
}

func (c *control) reject(path string, err error) {
	c.rejected = true
	file := path
	if se, ok := errors.AsType[*scripting.Error](err); ok {
		file = se.File
	}
	c.rt.host(event.None, &tape.Router{Phase: tape.RouterRejected, File: file, Path: path, Err: err.Error()})
}

func (c *control) clear(p *scripting.Program) {
	if c.rejected {
		c.rejected = false
		c.rt.host(event.None, &tape.Router{Phase: tape.RouterCleared, File: p.File, Path: p.Path, Hash: p.Hash})
	}
}

// watch follows the file of the router that is live; embedded ones have none.
func (c *control) watch() {
	c.unwatch()
	path := c.program.Path
	if !c.rt.cfg.Watch || path == "" {
		return
	}
	w, err := reload.New(path, c.program.Text, func(text string, err error) { c.saved(path, text, err) })
	if err != nil {
		c.rt.message(tape.Warn, "changes of "+path+" are not seen: "+err.Error())
		return
	}
	c.watcher = w
	c.rt.spawn("router watch", w.Run)
}

// unwatch lets go of the file. Close waits for a callback that may be waiting
// for the lock held here, so it is not waited for; what a late callback says of
// a file that is not the router's any more is ignored.
func (c *control) unwatch() {
	if w := c.watcher; w != nil {
		c.watcher = nil
		c.rt.spawn("router watch end", w.Close)
	}
}

// end lets go of the router's file for good.
func (c *control) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.unwatch()
}

// saved takes over a file that has changed. The last good router stays while
// the file is broken.
func (c *control) saved(path, text string, err error) {
	c.loading.Lock()
	defer c.loading.Unlock()
	now := c.current()
	if now.Path != path { // stays so while loading is held
		return
	}
	p := now
	if err == nil {
		p, err = c.compile(now.File, path, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
	case err != nil:
		c.reject(path, err)
	case p.Hash == now.Hash:
		c.clear(p)
	default:
		c.adopt(p)
	}
}

// current is the program loaded last.
func (c *control) current() *scripting.Program {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.program
}

// Explain runs the router that decided a row once more on what it saw, in a
// machine of its own, and tells which line decided. Knobs (by file and name) are
// as given, or as they stand now where they are not; loads are as now and module
// variables afresh, so the router may decide otherwise; then nobody can tell the
// line, which is an error. Last of the row is for its position alone: end tokens are
// known here.
func (r *Runtime) Explain(core event.Peer, decided *event.RowResult, row *scripting.Row, knobs map[string]map[string]float64) (file string, line int, src string, err error) {
	r.ctl.mu.Lock()
	p := r.ctl.programs[decided.Router]
	r.ctl.mu.Unlock()
	if p == nil {
		return "", 0, "", errors.New("the router " + decided.Router + " is not known to this session")
	}
	env := r.env(core)
	env.Scorer = scripting.RecordedScorer(decided)
	if was := knobs[p.File]; was != nil {
		env.Knobs = scripting.NewKnobs()
		env.Knobs.Declare(p)
		for name, v := range was {
			_ = env.Knobs.Set(name, v, "flag") // of a knob that this version does not have: not asked for
		}
	}
	seen := *row
	seen.Last = row.Last || slices.Contains(r.cfg.EOS, row.Output.Token)
	line, src, again := scripting.Trace(env, p, &seen)
	if again.Dest != decided.Dest || again.Action != decided.Action || again.At != decided.At {
		return "", 0, "", errors.New("the router " + p.File + " decides otherwise now: a knob has moved since, or it looks at more than the row")
	}
	return p.File, line, src, nil
}

func (c *control) keep(p *scripting.Program) {
	c.program = p
	c.programs[p.Hash] = p
}

// resolve finds a router by name or file and compiles it.
func (c *control) resolve(nameOrPath string) (*scripting.Program, error) {
	path, text, embedded, err := c.rt.cfg.Library.Resolve(nameOrPath)
	if err != nil {
		return nil, err
	}
	file := filepath.Base(path)
	if embedded {
		file = strings.TrimSuffix(nameOrPath, library.Ext) + library.Ext
	}
	p, err := c.compile(file, path, text)
	if e, ok := errors.AsType[*scripting.Error](err); ok && path != "" {
		// A file of one's own may shadow a shipped router of the same name.
		named := *e
		named.File = path
		return nil, &named
	}
	return p, err
}

// compile turns a router's text into a program that has survived a dry run on
// the last rows that were routed. An embedded router has no path.
func (c *control) compile(file, path, text string) (*scripting.Program, error) {
	p, err := scripting.Compile(file, text)
	if err != nil {
		return nil, err
	}
	p.Path = path
	p.Settle(c.rt.scorer(event.Front))
	for peer := range c.rt.n {
		var rows []scripting.Row
		if peer < len(c.rt.subs) {
			rows = c.rt.subs[peer].lastRows()
		}
		env := c.rt.env(event.Peer(peer))
		env.Knobs = scripting.NewKnobs()
		env.Knobs.Declare(p)
		env.Scorer = c.rt.scorer(event.Peer(peer))
		if err := scripting.DryRun(p, env, rows); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (s *subserver) lastRows() []scripting.Row {
	s.recentMu.Lock()
	defer s.recentMu.Unlock()
	return slices.Clone(s.recent)
}

// moved is the record of a knob of p whose value was old, if it is another now.
func (c *control) moved(p *scripting.Program, name string, old float64) []tape.Knob {
	for _, k := range c.knobs.List() {
		if k.Name == name && k.Value != old {
			return []tape.Knob{{
				Router: p.File, Knob: k.Name, Help: k.Help, Min: k.Min, Max: k.Max, Default: k.Default,
				Old: old, New: k.Value, Source: k.Source, Hash: p.Hash,
			}}
		}
	}
	return nil
}

func (c *control) listRouters() []string {
	var names []string
	for _, e := range c.rt.cfg.Library.List() {
		names = append(names, e.Name)
	}
	return names
}

// Routers lists the names that SetRouter takes.
func (r *Runtime) Routers() []string {
	r.ctl.mu.Lock()
	defer r.ctl.mu.Unlock()
	return r.ctl.routers
}

// RouterText is the source of the router loaded last.
func (r *Runtime) RouterText() string { return r.ctl.current().Text }

// swapTo hands a program to every decode loop.
func (c *control) swapTo(p *scripting.Program) {
	left := new(atomic.Int32)
	left.Store(int32(c.rt.n))
	for _, s := range c.rt.subs {
		s.in.put(item{swap: &swap{program: p, left: left}})
	}
}
