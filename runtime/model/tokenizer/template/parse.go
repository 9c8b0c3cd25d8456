package template

import (
	"errors"
	"fmt"
	"io"
	"strings"

	tag "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// Bounds of a template's source: published ones have up to 20 KB. They keep
// the parser's recursion far from the end of the stack.
const (
	maxSource    = 256 << 10
	maxTags      = 1 << 13
	maxTagTokens = 1 << 12
	maxNesting   = 64
)

// tags are the tags known. Those that read other files are not among them.
var tags = func() *exec.ControlStructureSet {
	m := map[string]parser.ControlStructureParser{
		"set":        parseSet,
		"generation": parseGeneration,
	}
	for _, name := range []string{"for", "if", "macro", "break", "continue"} {
		p, ok := tag.All.Get(name)
		if !ok {
			panic("gonja has no tag " + name)
		}
		m[name] = p
	}
	return exec.NewControlStructureSet(m)
}()

// noFiles is the loader of a template that has no others.
type noFiles struct{}

var errNoFiles = errors.New("a chat template cannot read files")

func (noFiles) Read(string) (io.Reader, error)         { return nil, errNoFiles }
func (noFiles) Resolve(string) (string, error)         { return "", errNoFiles }
func (noFiles) Inherit(string) (loaders.Loader, error) { return nil, errNoFiles }

// parse turns source into a tree.
func parse(source string) (root *nodes.Template, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the source has %d bytes, allowed are %d", len(source), maxSource)
	}
	defer func() {
		// gonja panics on some malformed sources.
		if p := recover(); p != nil {
			root, err = nil, fmt.Errorf("the parser gives up: %v", p)
		}
	}()
	cfg := config.New()
	cfg.KeepTrailingNewline = true // lex has done all that
	toks, err := lex(source, cfg)
	if err != nil {
		return nil, err
	}
	root, err = parser.NewParser("chat template", tokens.NewStream(toks), cfg, noFiles{}, tags).Parse()
	if err != nil {
		return nil, brief(err)
	}
	return root, nil
}

// brief cuts an error that quotes half of the source.
func brief(err error) error {
	const most = 300
	s := err.Error()
	if len(s) > most {
		s = s[:most] + "..."
	}
	return errors.New(strings.ToValidUTF8(s, "?"))
}

// setTag is {% set %}: gonja's own keeps its parts to itself.
type setTag struct {
	*nodes.Wrapper // the body of a block set, nil otherwise
	at             *tokens.Token
	name           string // of the variable, or of the namespace
	attribute      string // "" unless a namespace is written to
	value          nodes.Expression
}

func (s *setTag) Position() *tokens.Token { return s.at }
func (s *setTag) String() string          { return "set" }

func parseSet(p, args *parser.Parser) (nodes.ControlStructure, error) {
	s := &setTag{at: args.Current()}
	target, err := args.ParseVariableOrLiteral()
	if err != nil {
		return nil, err
	}
	switch n := target.(type) {
	case *nodes.Name:
		s.name = n.Name.Val
	case *nodes.GetAttribute:
		if of, ok := n.Node.(*nodes.Name); ok && n.Attribute != "" {
			s.name, s.attribute = of.Name.Val, n.Attribute
		}
	}
	if s.name == "" {
		return nil, args.Error("set needs a variable, or an attribute of a namespace", s.at)
	}
	if args.Match(tokens.Assign) == nil {
		if !args.End() {
			return nil, args.Error("'=' or the end of the tag is expected", args.Current())
		}
		s.Wrapper, err = body(p, "endset")
		return s, err
	}
	if s.value, err = args.ParseExpression(); err != nil {
		return nil, err
	}
	if !args.End() {
		return nil, args.Error("set has something left over", args.Current())
	}
	return s, nil
}

// generationTag is {% generation %}, which marks for training what the
// assistant says.
type generationTag struct{ *nodes.Wrapper }

func (g *generationTag) String() string { return "generation" }

func parseGeneration(p, args *parser.Parser) (nodes.ControlStructure, error) {
	if !args.End() {
		return nil, args.Error("generation takes no arguments", args.Current())
	}
	w, err := body(p, "endgeneration")
	return &generationTag{w}, err
}

func body(p *parser.Parser, end string) (*nodes.Wrapper, error) {
	w, args, err := p.WrapUntil(end)
	if err != nil {
		return nil, err
	}
	if !args.End() {
		return nil, args.Error(end+" takes no arguments", nil)
	}
	return w, nil
}
