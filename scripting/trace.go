package scripting

import "tokenrouter/runtime/event"

// maxWrong bounds how many wrong returns of a program are traced for their line:
// a router whose errors all read differently must not run twice for ever.
const maxWrong = 64

// Trace runs route on a row again, in a state of its own and line by line, and
// tells which line decided. Module variables are as after loading; knobs, draws
// and loads are as the environment has them now.
func (vm *VM) Trace(row *Row) (line int, src string, d Decision) { return Trace(vm.env, vm.p, row) }

// Trace is like VM.Trace for any goroutine.
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

// DryRun runs p on rows that were seen at subserver env.Self, each at the
// positions where it sends the request as well, and reports the first fault as
// an *Error. Without rows it takes built-in samples at the front: sure and
// unsure, first and later. Knobs are at their values, and nothing is printed.
func DryRun(p *Program, env Env, rows []Row) error {
	if len(rows) == 0 {
		env.Self, rows = event.Front, Samples(env.Vocab)
	}
	env.Print = nil
	run := dryRun{vms: make([]*VM, env.Peers)}
	for i := range run.vms {
		e := env
		e.Self = event.Peer(i)
		vm, err := NewVM(e, p)
		if err != nil {
			return err
		}
		defer vm.Close()
		run.vms[i] = vm
	}
	for i := range rows {
		if fault, at := run.row(rows[i], env.Self); fault != "" {
			e := parseError(p.File, fault)
			e.Msg += " (at " + event.Role(at, env.Peers) + ")"
			return e
		}
	}
	return nil
}

type dryRun struct{ vms []*VM }

// row follows one row through a few hand-offs, as if every model said the same.
func (r dryRun) row(row Row, at event.Peer) (fault string, where event.Peer) {
	for range len(r.vms) + 1 {
		vm := r.vms[at]
		d := vm.Route(&row)
		if d.Fault != "" || d.Dest == at {
			return d.Fault, at
		}
		_, fields, fault := vm.Send(&row, d.Dest)
		if fault != "" {
			return fault, at
		}
		msg := &event.PeerReq{
			ID: row.Req, From: at, Loc: row.Pos, Status: event.Alive,
			Limits: event.Limits{PromptLen: row.PromptLen}, State: d.State, Fields: fields,
		}
		if d.Action == event.Keep {
			msg.Suffix = []event.Token{row.Output.Token}
			row.Pos++
			row.Step++
		}
		at = d.Dest
		if v := r.vms[at].Receive(msg, nil); v.Fault != "" {
			return v.Fault, at
		}
		row.State, row.Fields, row.Prefill = d.State, fields, true
	}
	return "", at
}

// Samples are rows for a dry run when none have been seen yet.
func Samples(vocab int) []Row {
	if vocab < 8 {
		vocab = 1 << 10
	}
	var rows []Row
	const prompt = 16
	for step := range 4 {
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
