package template

import (
	"fmt"
	"maps"
	"slices"

	tag "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/nodes"
)

// checker walks a parsed template once, so that what is not known is an error
// of Parse and not of the first conversation that comes by it.
type checker struct {
	line int
	err  error
}

func check(root *nodes.Template) error {
	c := &checker{}
	c.nodes(root.Nodes, 0)
	if c.err != nil {
		return fmt.Errorf("line %d: %w", c.line, c.err)
	}
	return nil
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) wrapper(w *nodes.Wrapper, depth int) {
	if w != nil {
		c.nodes(w.Nodes, depth+1)
	}
}

func (c *checker) nodes(list []nodes.Node, depth int) {
	if depth > maxNesting {
		c.fail("tags are nested more than %d deep", maxNesting)
	}
	for _, n := range list {
		if c.err != nil {
			return
		}
		switch n := n.(type) {
		case *nodes.Output:
			c.line = n.Start.Line
			if n.Condition != nil {
				c.fail("a conditional expression is not understood")
			}
			c.expr(n.Expression)
		case *nodes.ControlStructureBlock:
			c.line = n.Location.Line
			c.tag(n.ControlStructure, depth)
		}
	}
}

func (c *checker) tag(t nodes.ControlStructure, depth int) {
	switch t := t.(type) {
	case *tag.IfControlStructure:
		c.exprs(t.Conditions...)
		for _, w := range t.Wrappers {
			c.wrapper(w, depth)
		}
	case *tag.ForControlStructure:
		if t.Recursive {
			c.fail("recursive loops are not supported")
		}
		c.exprs(t.ObjectEvaluator, t.IfCondition)
		c.wrapper(t.BodyWrapper, depth)
		c.wrapper(t.EmptyWrapper, depth)
	case *setTag:
		c.expr(t.value)
		c.wrapper(t.Wrapper, depth)
	case *tag.MacroControlStructure:
		if t.VarArgsName != "" || t.KwArgsName != "" {
			c.fail("macro %s takes *args or **kwargs, which is not supported", t.Name)
		}
		for _, p := range t.Kwargs {
			c.exprs(p.Value)
		}
		c.wrapper(t.Macro.Wrapper, depth)
	case *generationTag:
		c.wrapper(t.Wrapper, depth)
	}
}

func (c *checker) exprs(list ...nodes.Expression) {
	for _, n := range list {
		c.expr(n)
	}
}

func (c *checker) named(m map[string]nodes.Expression) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		c.expr(m[name])
	}
}

func (c *checker) expr(n nodes.Node) {
	if c.err != nil {
		return
	}
	switch n := n.(type) {
	case *nodes.List:
		c.exprs(n.Val...)
	case *nodes.Tuple:
		c.exprs(n.Val...)
	case *nodes.Dict:
		for _, p := range n.Pairs {
			c.exprs(p.Key, p.Value)
		}
	case *nodes.Negation:
		c.expr(n.Term)
	case *nodes.UnaryExpression:
		c.expr(n.Term)
	case *nodes.BinaryExpression:
		if n.Right == nil {
			c.fail("the right side of %s is missing", n.Operator.Token.Val)
		}
		c.exprs(n.Left, n.Right)
	case *nodes.GetAttribute:
		c.expr(n.Node)
	case *nodes.GetItem:
		c.exprs(n.Node, n.Arg)
	case *nodes.GetSlice:
		c.exprs(n.Node, n.Start, n.End, n.Step)
	case *nodes.Call:
		if name, ok := n.Func.(*nodes.Name); ok && name.Name.Val == ifName && (len(n.Args) < 2 || len(n.Args) > 3) {
			c.fail("a conditional expression has %d parts", len(n.Args))
		}
		c.expr(n.Func)
		c.exprs(n.Args...)
		c.named(n.Kwargs)
	case *nodes.FilteredExpression:
		c.expr(n.Expression)
		for _, f := range n.Filters {
			if filters[f.Name] == nil {
				c.fail("the filter %.40q is not known", f.Name)
			}
			c.exprs(f.Args...)
			c.named(f.Kwargs)
		}
	case *nodes.TestExpression:
		c.expr(n.Expression)
		if tests[n.Test.Name] == nil {
			c.fail("the test %.40q is not known", n.Test.Name)
		}
		c.exprs(n.Test.Args...)
	}
}
