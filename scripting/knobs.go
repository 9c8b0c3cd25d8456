package scripting

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"tokenrouter/runtime/tape"
	"tokenrouter/scripting/near"
)

// Param is a knob as a router file declares it.
type Param struct {
	Name, Help        string
	Default, Min, Max float64
	Head              string // whose manifest has the default, see [Program.Settle]; "" for none
	Calibrated        bool   // Default is the manifest's
}

// Knob is the state of one knob.
type Knob struct {
	Param
	Value  float64
	Source string // file, head, slider, flag: who set Value
}

// slot holds one knob. VMs read value without a lock; the rest belongs to Knobs.
type slot struct {
	value  atomic.Uint64 // math.Float64bits
	param  Param
	source string
}

func newSlot(p Param) *slot {
	s := &slot{param: p, source: p.source()}
	s.value.Store(math.Float64bits(p.Default))
	return s
}

func (s *slot) get() float64 { return math.Float64frombits(s.value.Load()) }

// Knobs are the values of all knobs, shared by the VMs of a session and safe
// for concurrent use. Values are kept per router file: a knob of the same name
// in another file is another knob, and a router that comes back finds its own.
type Knobs struct {
	mu     sync.Mutex
	file   string // declared last: the one that Set, Get and List speak of
	order  []string
	router map[string]map[string]*slot // file, name
}

// NewKnobs returns an empty set.
func NewKnobs() *Knobs { return &Knobs{router: map[string]map[string]*slot{}} }

// Declare makes p's knobs the current ones. A value set by slider or flag holds
// until the default of that knob changes; then the new default wins.
// Returned is a record for every knob that is new or whose value, default or
// range moved.
func (k *Knobs) Declare(p *Program) []tape.Knob {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.file = p.File
	k.order = k.order[:0]
	known := k.router[p.File]
	if known == nil {
		known = map[string]*slot{}
		k.router[p.File] = known
	}
	var changes []tape.Knob
	for _, d := range p.Params {
		k.order = append(k.order, d.Name)
		s, old := known[d.Name], d.Default
		var was Param
		if s == nil {
			s = newSlot(d)
			known[d.Name] = s
		} else {
			was, old = s.param, s.get()
			v := old
			if was.Default != d.Default {
				v, s.source = d.Default, d.source()
			}
			s.param = d
			s.value.Store(math.Float64bits(min(max(v, d.Min), d.Max)))
		}
		if s.param != was || s.get() != old {
			changes = append(changes, tape.Knob{
				Router: p.File, Knob: d.Name, Help: d.Help, Min: d.Min, Max: d.Max, Default: d.Default,
				Old: old, New: s.get(), Source: s.source, Hash: p.Hash,
			})
		}
	}
	return changes
}

// Set moves a knob of the current router. The source is "slider" or "flag". The
// error names the known knobs, or the range.
func (k *Knobs) Set(name string, v float64, source string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.order, name) {
		if len(k.order) == 0 {
			return fmt.Errorf("%s has no knob %q: it declares none with param()", k.fileName(), name)
		}
		return fmt.Errorf("%s has no knob %q%s", k.fileName(), name, near.List(name, "knobs", k.order))
	}
	s := k.router[k.file][name]
	if p := s.param; !(v >= p.Min && v <= p.Max) {
		return fmt.Errorf("knob %q cannot be %s: it ranges from %s to %s", name, num(v), num(p.Min), num(p.Max))
	}
	s.value.Store(math.Float64bits(v))
	s.source = source
	return nil
}

// Get returns the value of a knob of the current router.
func (k *Knobs) Get(name string) (v float64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.order, name) {
		return 0, false
	}
	return k.router[k.file][name].get(), true
}

// List returns the current router's knobs in the order of the file.
func (k *Knobs) List() []Knob {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]Knob, 0, len(k.order))
	for _, name := range k.order {
		s := k.router[k.file][name]
		out = append(out, Knob{Param: s.param, Value: s.get(), Source: s.source})
	}
	return out
}

// slot finds the knob that p's file has declared, for a VM that loads p. A VM
// may load a program before it is declared (a dry run, a trace): then the knob
// is its own and stands at its default.
func (k *Knobs) slot(p *Program, d Param) *slot {
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if s := k.router[p.File][d.Name]; s != nil && s.param == d {
			return s
		}
	}
	return newSlot(d)
}

func (k *Knobs) fileName() string {
	if k.file == "" {
		return "no router is loaded, so it"
	}
	return k.file
}

func num(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
