package scripting

import "tokenrouter/runtime/event"

// maxWrong bounds how many wrong returns of a program are traced for their line:
// a router whose errors all read differently must not run twice for ever.
const maxWrong = 64

// Trace runs route on a row again, in a state of its own and line by line, and
// tells which line decided. Module variables are as after loading; knobs, draws
// and loads are as the environment has them now.
func Trace(env Env, p *Program, row *Row) (line int, src string, d Decision) {
	env.Print = nil
	vm, err := NewVM(env, p)
	if err != nil {
		return 0, "", Decision{Dest: event.Front, State: row.State, Fault: err.Error()}
	}
	defer vm.Close()
	vm.wrong = map[string]int{}
	vm.meter.hook = func() {
		if dbg, ok := vm.l.GetStack(0); ok {
			if _, err := vm.l.GetInfo("l", dbg, nil); err == nil && dbg.CurrentLine > 0 {
				line = dbg.CurrentLine
			}
		}
	}
	vm.tracing = &line
	d = vm.Route(row)
	return line, p.line(line), d
}

// at gives an error about what route returned the line of that return. Finding
// it takes a trace, so lines are remembered by the error's text.
func (vm *VM) at(row *Row, err error) error {
	msg := err.Error()
	line := 0
	if vm.tracing != nil {
		line = *vm.tracing
	} else if known, ok := vm.wrong[msg]; ok {
		line = known
	} else {
		line = vm.traceLine(row, msg)
	}
	return &Error{File: vm.p.File, Line: line, Msg: oneLine(msg)}
}

func (vm *VM) traceLine(row *Row, msg string) int {
	if len(vm.wrong) >= maxWrong {
		return vm.route.Proto.LineDefined
	}
	line, _, d := Trace(vm.env, vm.p, row)
	if want := (&Error{File: vm.p.File, Line: line, Msg: oneLine(msg)}).Error(); d.Fault != want {
		line = vm.route.Proto.LineDefined // module variables made the difference
	}
	if vm.wrong == nil {
		vm.wrong = map[string]int{}
	}
	vm.wrong[msg] = line
	return line
}

// DryRun runs p on rows that were seen at subserver env.Self and on built-in
// samples at the front, each at the positions where it sends the request as
// well, and reports the first fault as an *Error. Knobs are at their values, and
// nothing is printed. Heads are as env.Scorer knows them, their scores made up.
func DryRun(p *Program, env Env, rows []Row) error {
	return dry(p, env, rows, func(*Call) {})
}

func dry(p *Program, env Env, rows []Row, seen func(*Call)) error {
	env.Print = nil
	if err := p.checkHeads(env.Scorer); err != nil {
		return err
	}
	scores := new(int)
	run := dryRun{p: p, vms: make([]*VM, env.Peers), seen: seen}
	for i := range run.vms {
		e := env
		e.Self = event.Peer(i)
		e.Scorer = &trialScorer{env.Scorer, event.Role(e.Self, env.Peers), scores}
		vm, err := NewVM(e, p)
		if err != nil {
			return err
		}
		defer vm.Close()
		run.vms[i] = vm
	}
	for i := range rows {
		if err := run.recorded(rows[i], env.Self); err != nil {
			return err
		}
	}
	for _, row := range samples(env.Vocab) {
		row.Emitted = emitted(p, &row)
		row.Last = row.Step == lastSample
		if err := run.row(row, event.Front); err != nil {
			return err
		}
	}
	return nil
}

type dryRun struct {
	p    *Program
	vms  []*VM
	seen func(*Call) // told of every call
}

// recorded runs a row of another router. What that router's send gave is not
// what p's will give, so fields of p itself do as well; r.state stays with the
// request, so p has to read it.
func (r dryRun) recorded(row Row, at event.Peer) *Error {
	if out := emitted(r.p, &row); row.Emitted == 0 || row.Emitted > out {
		row.Emitted = out // a router that held less back has decided; after a few tokens it is as p says
	}
	err := r.anyFields(row, at)
	if err == nil || len(row.State) == 0 {
		return err
	}
	fresh := row
	fresh.State = nil
	if r.anyFields(fresh, at) == nil {
		err.Msg += "; r.state of a running request is " + cut(FormatData(row.State), 60) + ", left by the router before: read it with a default"
	}
	return err
}

func (r dryRun) anyFields(row Row, at event.Peer) *Error {
	err := r.row(row, at)
	for from := range r.vms {
		if err == nil {
			return nil
		}
		if _, fields, fault := r.vms[from].Send(&row, at); event.Peer(from) != at && fault == "" {
			own := row
			own.Fields = fields
			if r.row(own, at) == nil {
				return nil
			}
		}
	}
	return err
}

// row follows a row through a few hand-offs, as if every model said the same, and
// where tokens are held back through as many steps as may be taken back, the last
// of which ends the answer.
func (r dryRun) row(row Row, at event.Peer) *Error {
	steps := len(r.vms) + 2 + r.p.Hold
	for n := range steps {
		vm := r.vms[at]
		r.seen(&Call{Hook: "route", At: at, Row: row})
		d := vm.Route(&row)
		if d.Fault != "" {
			return r.fault(d.Fault, at)
		}
		if d.Dest == at {
			if r.p.Hold == 0 && (at == event.Front || !row.Prefill) {
				return nil
			}
			row.State, row.Prefill = d.State, false // one more step there
			r.advance(&row, 1)
			row.Last = r.p.Hold > 0 && n+2 == steps
			continue
		}
		r.seen(&Call{Hook: "send", At: at, Row: row, State: d.State, Dest: d.Dest})
		_, fields, fault := vm.Send(&row, d.Dest)
		if fault != "" {
			return r.fault(fault, at)
		}
		row.State, row.Fields = d.State, fields
		if err := r.handOff(&row, at, d); err != nil {
			return err
		}
		at = d.Dest
	}
	return nil
}

// handOff brings row to another subserver: one that has everything but the
// suffix, and, away from home, one that has nothing of the request yet.
func (r dryRun) handOff(row *Row, from event.Peer, d Decision) *Error {
	if d.Action == event.Truncate {
		r.advance(row, d.At-row.Pos)
	}
	held := make([]event.Token, row.Pos)
	msg := event.PeerReq{
		ID: row.Req, From: from, Loc: row.Pos, Status: event.Alive,
		Limits: event.Limits{PromptLen: row.PromptLen}, State: row.State, Fields: row.Fields,
	}
	if d.Action == event.Keep {
		msg.Suffix = []event.Token{row.Output.Token}
	}
	known := len(msg.Suffix)
	r.seen(&Call{Hook: "receive", At: d.Dest, Msg: msg, Held: held})
	v := r.vms[d.Dest].Receive(&msg, held)
	if v.Fault != "" {
		return r.fault(v.Fault, d.Dest)
	}
	if d.Dest != event.Front {
		msg.Status, msg.Loc, msg.Suffix = event.New, 0, append(held, msg.Suffix...)
		if first := r.vms[d.Dest].Receive(&msg, nil); first.Fault != "" {
			return r.fault(first.Fault, d.Dest)
		}
	}
	r.advance(row, max(known, len(v.Ids)))
	row.Prefill = d.Dest != event.Front
	return nil
}

// advance moves a row by n positions, forwards or back.
func (r dryRun) advance(row *Row, n int) {
	row.Pos += n
	row.Step += n
	row.Emitted = max(row.Emitted, emitted(r.p, row))
}

// emitted is how much a router would have let out before row.
func emitted(p *Program, row *Row) int { return max(row.PromptLen, row.Pos-p.Hold) }

func (r dryRun) fault(text string, at event.Peer) *Error {
	e := parseError(r.p.File, text)
	e.Msg += " (at " + event.Role(at, len(r.vms)) + ")"
	return e
}

// lastSample is the newest step of the samples; its tokens end their answers.
const lastSample = 3

// samples are rows as any session has them: sure and unsure, first and later.
func samples(vocab int) []Row {
	if vocab < 8 {
		vocab = 1 << 10
	}
	var rows []Row
	const prompt = 16
	for step := range lastSample + 1 {
		for i, p := range []float32{1, 0.98, 0.7, 0.4, 0.1} {
			o := &event.Output{
				Token: event.Token((step*5 + i) % vocab), Entropy: 4 * (1 - p), EntropyNorm: (1 - p) / 2,
				Top1: p, Top2: (1 - p) / 2, LogSumExp: 12,
			}
			for k := range 5 {
				o.TopK = append(o.TopK, event.TokenProb{Token: event.Token(k), Logprob: -float32(k) - (1 - p)})
			}
			rows = append(rows, Row{
				Req: event.ReqID(i + 1), Output: o, Pos: prompt + step, PromptLen: prompt, Step: step, Prefill: step == 0,
			})
		}
	}
	return rows
}
