package main

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/scripting"
	"tokenrouter/scripting/lint"
)

// maxRecorded is how many rows of each model are taken of a session: its last.
const maxRecorded = 256

// sessionRows are rows of a recorded session, by subserver, as its routers saw
// them.
type sessionRows struct {
	name   string
	models int
	vocab  [][]byte
	rows   [][]recordedRow
}

type recordedRow struct {
	scripting.Row
	router string // hash of the one that decided
}

// recorded reads the session that --rows names.
func (c *checkCmd) recorded() (*sessionRows, error) {
	path, err := findSession(c.Sessions, c.Rows)
	if err != nil {
		return nil, err
	}
	o, err := openSession(path)
	if err != nil {
		return nil, err
	}
	s := &sessionRows{name: filepath.Base(path), models: len(o.Manifest.Models)}
	if len(c.Models) > 0 && !slices.Contains(c.Models, s.models) {
		return nil, usage(fmt.Errorf("--models %v, but %s is a session of %d models", c.Models, s.name, s.models))
	}
	c.Models = []int{s.models}
	if s.vocab, err = o.Vocab(); err != nil {
		return nil, err
	}
	if s.rows, err = foldRows(o.Records(), s.models); err != nil {
		return nil, err
	}
	if slices.IndexFunc(s.rows, func(r []recordedRow) bool { return len(r) > 0 }) < 0 {
		return nil, fmt.Errorf("the session %s has no row that a router decided about", s.name)
	}
	return s, nil
}

// of are the rows of a subserver as p would have seen them: what another router
// left in r.state and gave as r.fields is not there.
func (s *sessionRows) of(p *scripting.Program, at event.Peer) []scripting.Row {
	var out []scripting.Row
	for _, r := range s.rows[at] {
		if r.router != p.Hash {
			r.State, r.Fields = nil, nil
		}
		out = append(out, r.Row)
	}
	return out
}

func (s *sessionRows) env(at event.Peer) scripting.Env {
	return scripting.Env{
		Self: at, Peers: s.models, Vocab: len(s.vocab),
		Text: func(t event.Token) string {
			if t < 0 || int(t) >= len(s.vocab) {
				return ""
			}
			return string(s.vocab[t])
		},
	}
}

// try runs a router on the rows of every subserver.
func (s *sessionRows) try(p *scripting.Program, scorer scripting.Scorer) error {
	for at := range s.rows {
		env := s.env(event.Peer(at))
		env.Scorer = scorer
		if err := scripting.DryRun(p, env, s.of(p, event.Peer(at))); err != nil {
			return err
		}
	}
	return nil
}

// measure times the calls about the rows of every subserver.
func (s *sessionRows) measure(p *scripting.Program) (out []lint.Cost, err error) {
	for at := range s.rows {
		rows := s.of(p, event.Peer(at))
		if len(rows) == 0 {
			continue
		}
		costs, err := lint.Measure(p, s.env(event.Peer(at)), rows)
		if err != nil {
			return nil, err
		}
		out = append(out, costs...)
	}
	return out, nil
}

// rowFold takes rows from a tape.
type rowFold struct {
	reqs  map[event.ReqID]*rowRequest
	batch []*event.Batch // by subserver: the one that runs
	rows  [][]recordedRow
}

// rowRequest is what is known of a request that is under way.
type rowRequest struct {
	hop           uint32
	state, fields []byte
	drew          []bool // by subserver: it has drawn a candidate
	emitted       int
	maxLen        int
	eos           []event.Token
}

func foldRows(records iter.Seq2[tape.Record, error], models int) ([][]recordedRow, error) {
	f := &rowFold{reqs: map[event.ReqID]*rowRequest{}, batch: make([]*event.Batch, models), rows: make([][]recordedRow, models)}
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if r.Core < 0 || int(r.Core) >= models {
			continue
		}
		switch {
		case r.Event != nil:
			f.event(r.Core, r.Event)
		case r.Command != nil:
			f.command(r.Core, r.Command)
		}
	}
	return f.rows, nil
}

func (f *rowFold) event(core event.Peer, ev *event.Event) {
	switch ev.Kind {
	case event.Arrive:
		if a := ev.Arrival; a != nil {
			f.reqs[ev.Req] = &rowRequest{
				drew: make([]bool, len(f.rows)), emitted: len(a.Prompt), maxLen: len(a.Prompt) + a.MaxTokens, eos: a.EOS,
			}
		}
	case event.PeerIn:
		if m := ev.Peer; m != nil {
			if q := f.reqs[m.ID]; q != nil && m.Hop > q.hop && (m.Status == event.New || m.Status == event.Alive) {
				q.hop, q.state, q.fields = m.Hop, m.State, m.Fields
			}
		}
	case event.StepDone:
		if b := f.batch[core]; b != nil && ev.Step != nil && ev.Step.Batch == b.ID {
			f.step(core, b, ev.Step)
		}
	}
}

func (f *rowFold) command(core event.Peer, c *event.Command) {
	switch c.Kind {
	case event.RunBatch:
		f.batch[core] = c.Batch
	case event.Emit:
		if q := f.reqs[c.Req]; q != nil {
			q.emitted = max(q.emitted, c.Pos+1)
		}
	case event.Finish:
		if core == event.Front {
			delete(f.reqs, c.Req)
		}
	}
}

// step takes the rows of a finished step.
func (f *rowFold) step(core event.Peer, b *event.Batch, st *event.StepResult) {
	k := 0
	for i := range b.Rows {
		in := &b.Rows[i]
		if !in.Sample {
			continue
		}
		if k == len(st.Rows) {
			return
		}
		res := &st.Rows[k]
		k++
		q := f.reqs[in.Req]
		if q == nil {
			continue
		}
		pos := in.Start + len(in.Tokens)
		row := scripting.Row{
			Req: in.Req, Output: &res.Output, Pos: pos, PromptLen: in.PromptLen, Step: pos - in.PromptLen, Prefill: !q.drew[core],
			State: q.state, Fields: q.fields, Emitted: q.emitted,
			Last: pos+1 >= q.maxLen || slices.Contains(q.eos, res.Output.Token),
		}
		q.drew[core], q.state = true, res.State
		f.rows[core] = append(f.rows[core], recordedRow{row, res.Router})
		if len(f.rows[core]) >= 2*maxRecorded {
			f.rows[core] = slices.Clone(f.rows[core][maxRecorded:])
		}
	}
}
