package export

import (
	"strconv"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// load writes the counters of a subserver that have changed.
func (t *trace) load(r *tape.Record, c *coreTrack) {
	now, old := r.Load, c.load
	if now == nil {
		return
	}
	c.load = now
	put := func(name, unit string, v int, was func(*tape.Load) int) {
		if old == nil || was(old) != v {
			t.w.counter(t.pid(r.Core), name, unit, r.At, float64(v))
		}
	}
	put("ready", "requests", now.Ready, func(l *tape.Load) int { return l.Ready })
	put("running", "requests", now.Running, func(l *tape.Load) int { return l.Running })
	put("pending", "requests", now.Pending, func(l *tape.Load) int { return l.Pending })
	if r.Core == event.Front {
		put("waiting", "requests", now.Waiting, func(l *tape.Load) int { return l.Waiting })
	}
	put("active", "requests", now.Active, func(l *tape.Load) int { return l.Active })
	put("B", "requests", now.B, func(l *tape.Load) int { return l.B })
	put("KV", "tokens", now.KVUsed, func(l *tape.Load) int { return l.KVUsed })
}

// host writes what came from around the cores.
func (t *trace) host(r *tape.Record) {
	switch h := r.Host.(type) {
	case *tape.Router:
		name := "router " + h.File
		if h.Hash != "" {
			name += "@" + h.Hash
		}
		t.mark(r, "router", name+" "+string(h.Phase), h.Err)
	case *tape.Knob:
		t.mark(r, "knob", h.Knob+" "+moved(number(h.Old), number(h.New)), h.Source)
	case *tape.Setting:
		t.mark(r, "setting", h.Setting+" "+moved(h.Old, h.New), "")
	case *tape.Message:
		if h.Level != tape.Info {
			t.mark(r, string(h.Level), h.Text, "")
		}
	case *tape.Closed:
		t.mark(r, "closed", "closed: "+h.Reason, "")
	case *tape.Telemetry:
		t.telemetry(r.At, h)
	}
}

// moved is a value that is stated, or has changed.
func moved(old, now string) string {
	if old == "" || old == now {
		return now
	}
	return old + " > " + now
}

func (t *trace) mark(r *tape.Record, cat, name, text string) {
	pid := t.pidRun()
	scope := "g"
	if r.Core >= 0 {
		pid, scope = t.pid(r.Core), "p"
	}
	t.w.instant(pid, pid, cat, name, scope, r.At)
	if text != "" {
		t.w.argText("text", text)
	}
	t.w.end()
}

// telemetry writes what the machine told; readings below 0 are unknown.
func (t *trace) telemetry(at int64, h *tape.Telemetry) {
	pid := t.pidMachine()
	t.w.counter(pid, "CPU of this process", "percent of a core", at, h.CPU)
	t.w.counter(pid, "CPU of the machine", "percent", at, h.Machine)
	t.w.counter(pid, "memory of this process", "bytes", at, float64(h.RSS))
	for i := range h.GPUs {
		g := &h.GPUs[i]
		name := "GPU " + strconv.Itoa(i)
		t.w.counter(pid, name+" load", "percent", at, g.Util)
		t.w.counter(pid, name+" memory", "bytes", at, float64(g.Used))
		t.w.counter(pid, name+" power", "watts", at, g.Watts)
	}
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
