package template

import (
	"fmt"
	"strings"
	"unicode"

	tag "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/nodes"
)

// state is a rendering under way.
type state struct {
	steps int // left
	bytes int // left
	calls int // macros under way
	line  int
	scope *scope
	out   *strings.Builder
}

// fault is the panic that ends a rendering; Render turns it into an error.
type fault struct{ error }

func (s *state) fail(format string, args ...any) {
	panic(fault{fmt.Errorf(format, args...)})
}

// step pays for a node.
func (s *state) step() {
	if s.steps--; s.steps < 0 {
		panic(fault{ErrBudget})
	}
}

// pay pays for bytes made or looked at. It is called before they are made.
func (s *state) pay(n int) {
	if n < 0 || n > s.bytes {
		panic(fault{ErrBudget})
	}
	s.bytes -= n
}

// scope is a level of variables.
type scope struct {
	vars  map[string]any
	outer *scope
}

func (s *state) lookup(name string) any {
	for at := s.scope; at != nil; at = at.outer {
		if v, ok := at.vars[name]; ok {
			return v
		}
	}
	return undefined{name}
}

func (s *state) define(name string, v any) {
	if s.scope.vars == nil {
		s.scope.vars = map[string]any{}
	}
	s.scope.vars[name] = v
}

// within runs f in a new level of variables.
func (s *state) within(outer *scope, f func()) {
	saved := s.scope
	s.scope = &scope{outer: outer}
	f()
	s.scope = saved
}

// capture gives what f writes.
func (s *state) capture(f func()) string {
	saved := s.out
	s.out = &strings.Builder{}
	f()
	text := s.out.String()
	s.out = saved
	return text
}

func (s *state) write(text string) {
	s.pay(len(text))
	s.out.WriteString(text)
}

// flow is how a list of nodes ended.
type flow int

const (
	through flow = iota
	broke
	continued
)

func (s *state) run(list []nodes.Node) flow {
	for _, n := range list {
		s.step()
		switch n := n.(type) {
		case *nodes.Data:
			s.write(dataText(n))
		case *nodes.Comment:
		case *nodes.Output:
			s.line = n.Start.Line
			s.write(s.text(s.eval(n.Expression)))
		case *nodes.ControlStructureBlock:
			s.line = n.Location.Line
			if f := s.tag(n.ControlStructure); f != through {
				return f
			}
		default:
			s.fail("%T is not known", n)
		}
	}
	return through
}

// dataText is the text between tags, cut where the tags say so.
func dataText(n *nodes.Data) string {
	text := n.Data.Val
	if n.Trim.Left || n.Data.Trim {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	if n.Trim.Right {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
	}
	return text
}

func (s *state) tag(c nodes.ControlStructure) flow {
	switch c := c.(type) {
	case *tag.IfControlStructure:
		for i, cond := range c.Conditions {
			if truth(s.eval(cond)) {
				return s.run(c.Wrappers[i].Nodes)
			}
		}
		if len(c.Wrappers) > len(c.Conditions) {
			return s.run(c.Wrappers[len(c.Conditions)].Nodes)
		}
	case *tag.ForControlStructure:
		return s.forLoop(c)
	case *setTag:
		s.set(c)
	case *tag.MacroControlStructure:
		s.define(c.Name, s.macro(c.Macro, s.scope))
	case *tag.BreakControlStructure:
		return broke
	case *tag.ContinueControlStructure:
		return continued
	case *generationTag:
		return s.run(c.Nodes)
	default:
		s.fail("%T is not known", c)
	}
	return through
}

func (s *state) set(c *setTag) {
	var v any
	if c.Wrapper != nil {
		v = s.capture(func() { s.within(s.scope, func() { s.run(c.Nodes) }) })
	} else {
		v = s.eval(c.value)
	}
	if c.attribute == "" {
		s.define(c.name, v)
		return
	}
	ns, ok := s.lookup(c.name).(*namespace)
	if !ok {
		s.fail("%s is no namespace, so %s.%s cannot be set", c.name, c.name, c.attribute)
	}
	ns.values[c.attribute] = v
}

// loop is the variable of that name inside a loop.
type loop struct {
	items []any
	at    int
}

func (l *loop) attribute(name string) any {
	n := len(l.items)
	switch name {
	case "index":
		return l.at + 1
	case "index0":
		return l.at
	case "revindex":
		return n - l.at
	case "revindex0":
		return n - l.at - 1
	case "first":
		return l.at == 0
	case "last":
		return l.at == n-1
	case "length":
		return n
	case "depth": // counts recursive loops, which are not supported
		return 1
	case "depth0":
		return 0
	case "previtem":
		if l.at > 0 {
			return l.items[l.at-1]
		}
	case "nextitem":
		if l.at+1 < n {
			return l.items[l.at+1]
		}
	case "cycle":
		return function(func(c *call) any {
			if len(c.args) == 0 {
				c.s.fail("cycle needs arguments")
			}
			return c.args[l.at%len(c.args)]
		})
	}
	return undefined{"loop." + name}
}

func (s *state) forLoop(c *tag.ForControlStructure) flow {
	items := s.items(s.eval(c.ObjectEvaluator))
	bind := func(item any) {
		if c.Value == "" {
			s.define(c.Key, item)
			return
		}
		two, ok := item.([]any)
		if !ok || len(two) != 2 {
			s.fail("the loop over %s, %s needs pairs", c.Key, c.Value)
		}
		s.define(c.Key, two[0])
		s.define(c.Value, two[1])
	}
	if c.IfCondition != nil {
		var kept []any
		for _, item := range items {
			s.step()
			s.within(s.scope, func() {
				bind(item)
				if truth(s.eval(c.IfCondition)) {
					s.pay(valueSize)
					kept = append(kept, item)
				}
			})
		}
		items = kept
	}
	if len(items) == 0 {
		if c.EmptyWrapper != nil {
			return s.run(c.EmptyWrapper.Nodes)
		}
		return through
	}
	l := &loop{items: items}
	for i, item := range items {
		s.step()
		l.at = i
		var f flow
		s.within(s.scope, func() {
			bind(item)
			s.define("loop", l)
			f = s.run(c.BodyWrapper.Nodes)
		})
		if f == broke {
			break
		}
	}
	return through
}

// macro makes a function of a macro; it sees the variables of where it stands.
func (s *state) macro(m *nodes.Macro, home *scope) function {
	return func(c *call) any {
		if s.calls++; s.calls > maxCalls {
			s.fail("macros call one another more than %d deep", maxCalls)
		}
		if len(c.args) > len(m.Kwargs) {
			s.fail("macro %s takes %d arguments, not %d", m.Name, len(m.Kwargs), len(c.args))
		}
		line := s.line
		text := s.capture(func() {
			s.within(home, func() {
				used := 0
				for i, p := range m.Kwargs {
					name := p.Key.(*nodes.String).Val
					v, named := c.named[name]
					switch {
					case i < len(c.args):
						v = c.args[i]
					case named:
						used++
					default:
						if _, none := p.Value.(*nodes.None); none {
							v = undefined{name}
						} else {
							v = s.eval(p.Value)
						}
					}
					s.define(name, v)
				}
				if used != len(c.named) {
					s.fail("macro %s has no argument of a name that is given, or has it twice", m.Name)
				}
				s.run(m.Wrapper.Nodes)
			})
		})
		s.line = line
		s.calls--
		return text
	}
}
