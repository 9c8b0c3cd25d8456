package live

import (
	"errors"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
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
// machine of its own, and tells which line decided.
func (r *Runtime) Explain(core event.Peer, hash string, row *scripting.Row) (file string, line int, src string, err error) {
	r.ctl.mu.Lock()
	p := r.ctl.programs[hash]
	r.ctl.mu.Unlock()
	if p == nil {
		return "", 0, "", errors.New("the router " + hash + " is not known to this session")
	}
	line, src, _ = scripting.Trace(r.env(core), p, row)
	return p.File, line, src, nil
}
