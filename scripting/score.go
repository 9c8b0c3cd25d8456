package scripting

import (
	"errors"
	"slices"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"tokenrouter/runtime/event"
)

// What r.score takes of the instructions of a call: evaluating a head is the
// dearest thing that a router does, to ask for what is known is next to nothing.
const (
	costScore = 2000
	costKnown = 16
)

// ErrNoModel is why a head cannot be evaluated where tokens are drawn or repeated:
// there is no hidden state.
var ErrNoModel = errors.New("no model computed this row; heads need --tokens models")

// StepScorer is a Scorer that may evaluate rows of one step together. It is told of
// them before the first is routed; Output is that of the Row that Score will be
// asked about.
type StepScorer interface {
	Scorer
	Step(rows []StepRow)
}

// StepRow is a row that is about to be routed.
type StepRow struct {
	Req    event.ReqID
	Output *event.Output
}

// scored is a score of the row that is decided about.
type scored struct {
	head  string
	value float64
}

// luaScore is r.score("name"). A head is evaluated once for a row, in route and in
// the send that follows it.
func (v *rowView) luaScore(l *lua.LState) int {
	arg := v.method(l)
	name, ok := l.Get(arg).(lua.LString)
	if !ok {
		l.RaiseError("r.score(%s): give the name of a head, as in r.score(\"query\")", showValue(l.Get(arg)))
	}
	meter := &v.vm.meter
	if i := slices.IndexFunc(v.scores, func(s scored) bool { return s.head == string(name) }); i >= 0 {
		meter.charge(l, costKnown)
		v.answer(l, v.scores[i].value)
		return 1
	}
	meter.charge(l, costScore)
	meter.used -= costScore // it fills no variables, so it brings no audit nearer
	if v.vm.env.Scorer == nil {
		l.RaiseError("r.score(%q): %s", cut(string(name), 40), ErrNoModel.Error())
	}
	score, err := v.vm.env.Scorer.Score(string(name), v.row)
	if err != nil {
		l.RaiseError("r.score(%q): %s", cut(string(name), 40), err.Error())
	}
	score = float64(float32(score)) // as the row's record keeps it
	if !(score >= 0 && score <= 1) {
		l.RaiseError("r.score(%q): the score %v does not lie between 0 and 1", cut(string(name), 40), score)
	}
	v.scores = append(v.scores, scored{string(name), score})
	v.answer(l, score)
	return 1
}

func (v *rowView) answer(l *lua.LState, score float64) {
	v.score, v.hasScore = score, true
	l.Push(lua.LNumber(score))
}

// unscored forgets what was scored: another row is decided about.
func (v *rowView) unscored() { v.scores, v.score, v.hasScore = v.scores[:0], 0, false }

// headUse is where a file asks for a head by name.
type headUse struct {
	name string
	line int
}

// score notes r.score("name") with a name that stands in the file: such heads are
// checked when the router is loaded, not when a rare branch is taken.
func (w *walker) score(call *ast.FuncCallExpr) {
	if len(call.Args) == 0 {
		return
	}
	row, method := call.Receiver, call.Method
	if get, ok := call.Func.(*ast.AttrGetExpr); ok {
		if key, ok := get.Key.(*ast.StringExpr); ok {
			row, method = get.Object, key.Value
		}
	}
	id, isName := row.(*ast.IdentExpr)
	name, isText := call.Args[0].(*ast.StringExpr)
	if method != "score" || !isName || !isText {
		return
	}
	s, local := w.resolve(id.Value)
	if !local || s.vars[id.Value] != rowArg && id.Value != "r" && id.Value != "req" {
		return
	}
	if !slices.ContainsFunc(w.heads, func(h headUse) bool { return h.name == name.Value }) {
		w.heads = append(w.heads, headUse{name.Value, call.Line()})
	}
}

// HeadLine is the first line that asks for a head by name, 0 if none does.
func (p *Program) HeadLine(head string) int {
	for _, h := range p.heads {
		if h.name == head {
			return h.line
		}
	}
	return 0
}

// checkHeads asks a scorer about the heads that the file names. Without a scorer
// nobody knows what there is.
func (p *Program) checkHeads(s Scorer) error {
	if s == nil {
		return nil
	}
	for _, h := range p.heads {
		if err := s.Check(h.name); err != nil {
			return &Error{File: p.File, Line: h.line, Msg: oneLine(err.Error())}
		}
	}
	return nil
}

// trialScorer scores in a dry run, where no model has computed the rows: 0, 0.5 and
// 1 in turn, so that both sides of a threshold are taken.
type trialScorer struct {
	session Scorer // nil: every head is known
	role    string // of the subserver whose machine asks
	turn    *int   // of all of them
}

// reader is a Scorer that knows whose rows a head reads: to ask for its score
// elsewhere is found in a dry run.
type reader interface {
	Reads(head, role string) error
}

func (t *trialScorer) Check(head string) error {
	if t.session == nil {
		return nil
	}
	return t.session.Check(head)
}

func (t *trialScorer) Score(head string, _ *Row) (float64, error) {
	if err := t.Check(head); err != nil {
		return 0, err
	}
	if r, ok := t.session.(reader); ok {
		if err := r.Reads(head, t.role); err != nil {
			return 0, err
		}
	}
	*t.turn++
	return float64((*t.turn-1)%3) / 2, nil
}

// RecordedScorer gives the score that a row's decision was made with, for a trace
// of a row that nobody can compute again.
func RecordedScorer(decided *event.RowResult) Scorer { return recordedScorer{decided} }

type recordedScorer struct{ decided *event.RowResult }

func (recordedScorer) Check(string) error { return nil }

func (r recordedScorer) Score(string, *Row) (float64, error) {
	if !r.decided.Scored {
		return 0, errors.New("the record of this row has no score")
	}
	return float64(r.decided.Score), nil
}
