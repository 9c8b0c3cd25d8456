package sched_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/fabric"
	"tokenrouter/runtime/sched"
)

// TestScripts runs testdata/*.txt. A script drives a cluster by hand: the
// "models" and the "router" are what its done lines say. A do block holds one
// command a line:
//
//	cluster seats=(2,2) kv=(64,64) block=4 [chunk=2] [budget=8] [overcommit=200] [timeout=1s]
//	        [noprefix] [active=1] [resubmit] [collide] [rows]
//	                                        active: at most so many are admitted at a time
//	                                        resubmit: every hand-off is a new request there
//	                                        collide: all hashes of the prefix cache are equal
//	                                        rows: print what each row gets of the KV
//	policy eager | policy fixed B=(1,3) W=20ms | policy lock-step
//	policy table n1=(1,1) n2=(1,2) W=20ms
//	policy ahead step=(6ms,28ms) share0=(650000,350000) share1=(1000000,0) latency=1ms W=60ms
//	arrive r1 prompt=(1,2,3) max=4 eos=9
//	dispatch 0                              start a batch at subserver 0 if the policy says so
//	done 0 r1=(7,keep,0) r2=(8,drop,1,budget=2,fields=h,state=s,fault=text) r3=(9,truncate,1,at=5,hold=3)
//	                                        answers the rows that sampled
//	fail 0 err=text                         the runner failed
//	deliver 0->1 [append=(5,6)] [fault=text]
//	                                        the next message of that link arrives; receive's answer
//	flush                                   every message arrives, in the order sent
//	stop r1 pos=4 | cancel r1 [pos=6] | wake 0 gen=1
//	repeat                                  the message delivered last arrives once more
//	inject 1 r1 from=0 hop=1 loc=3 suffix=(4,5) seen=(5,5) status=alive prompt=2 max=9
//	       [hold=2 emitted=4 writers=(0) cut]
//	restart 1                               the subserver forgets everything
//	show                                    every core and what it knows
//
// Any command takes at=10ms, which moves the clock. Commands of the cores are
// printed with the subserver's number in front. Every invariant is checked after
// every command; once a message was injected, those of single cores only.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &script{}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd != "do" {
					d.Fatalf(t, "unknown directive %q", d.Cmd)
				}
				s.out.Reset()
				for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
					if err := s.line(line); err != nil {
						d.Fatalf(t, "%s: %v", line, err)
					}
				}
				return s.out.String()
			})
		})
	}
}

type script struct {
	f       *fabric.Fabric
	now     int64
	verdict event.Verdict
	foreign bool
	rows    bool
	last    *event.Event
	lastTo  event.Peer
	out     strings.Builder
}

func (s *script) line(line string) (err error) {
	cmd, list, err := datadriven.ParseLine(line)
	if err != nil {
		return err
	}
	a := args(list)
	if at := a.str("at"); at != "" {
		d, err := time.ParseDuration(at)
		if err != nil {
			return err
		}
		s.now = int64(d)
	}
	if cmd == "cluster" {
		return s.cluster(a)
	}
	if err := s.do(cmd, a); err != nil {
		return err
	}
	if !s.foreign {
		return s.f.Check()
	}
	for i := range s.f.Len() {
		if err := s.f.Core(event.Peer(i)).Check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) cluster(a args) (err error) {
	cfgs := fabric.Uniform(a.nums("seats"), a.nums("kv"), a.num("block"))
	for i := range cfgs {
		cfgs[i].Chunk, cfgs[i].Budget, cfgs[i].Overcommit = a.num("chunk"), a.num("budget"), a.num("overcommit")
		cfgs[i].Timeout, cfgs[i].NoPrefix = a.ns("timeout"), a.has("noprefix")
		cfgs[i].MaxActive, cfgs[i].Resubmit = a.num("active"), a.has("resubmit")
	}
	s.f, err = fabric.New(cfgs, func(event.Peer, *event.PeerReq, sched.View) event.Verdict { return s.verdict })
	s.now, s.foreign, s.rows = 0, false, a.has("rows")
	if a.has("collide") {
		for i := range cfgs {
			s.f.Core(event.Peer(i)).Collide()
		}
	}
	return err
}

func (s *script) do(cmd string, a args) error {
	switch cmd {
	case "policy":
		p := a.policy()
		for i := range s.f.Len() {
			s.step(event.Peer(i), event.Event{Kind: event.SetPolicy, Policy: p})
		}
	case "arrive":
		s.step(event.Front, event.Event{Kind: event.Arrive, Req: a.req(0), Arrival: &event.Arrival{
			Prompt: a.tokens("prompt"), MaxTokens: a.num("max"), EOS: a.tokens("eos"),
		}})
	case "dispatch":
		s.step(a.core(), event.Event{Kind: event.Dispatch})
	case "done":
		return s.done(a)
	case "fail":
		s.step(a.core(), event.Event{Kind: event.StepDone, Step: &event.StepResult{
			Batch: s.f.Core(a.core()).Running().ID, Err: a.str("err"),
		}})
	case "deliver":
		var from, to event.Peer
		if _, err := fmt.Sscanf(a[0].Key, "%d->%d", &from, &to); err != nil {
			return err
		}
		s.verdict = event.Verdict{Fault: a.str("fault")}
		if a.vals("append") != nil {
			s.verdict.Kind, s.verdict.Ids, s.verdict.Stop = event.Append, a.tokens("append"), a.num("stop")
		}
		return s.deliver(from, to)
	case "flush":
		s.verdict = event.Verdict{}
		for len(s.f.InFlight()) > 0 {
			m := s.f.InFlight()[0]
			if err := s.deliver(m.From, m.To); err != nil {
				return err
			}
		}
	case "stop":
		s.step(event.Front, event.Event{Kind: event.Stop, Req: a.req(0), Pos: a.num("pos")})
	case "cancel":
		s.step(event.Front, event.Event{Kind: event.Cancel, Req: a.req(0), Pos: a.num("pos")})
	case "wake":
		s.step(a.core(), event.Event{Kind: event.Wake, Gen: uint64(a.num("gen"))})
	case "repeat":
		s.step(s.lastTo, *s.last)
	case "inject":
		s.foreign = true
		s.inject(a)
	case "restart":
		return s.f.Restart(a.core())
	case "show":
		s.show()
	default:
		return fmt.Errorf("unknown command %q", cmd)
	}
	return nil
}

func (s *script) step(p event.Peer, ev event.Event) {
	ev.At = s.now
	s.print(p, s.f.Step(p, &ev, nil))
}

func (s *script) print(p event.Peer, cmds []event.Command) {
	for _, c := range cmds {
		fmt.Fprintf(&s.out, "%d: %v\n", p, c)
		if c.Kind != event.RunBatch || !s.rows {
			continue
		}
		for _, r := range c.Batch.Rows {
			fmt.Fprintf(&s.out, "     r%d from=%d cached=%d recomputed=%d blocks=%v\n", r.Req, r.Start, r.Cached, r.Recomputed, r.Blocks)
		}
	}
}

func (s *script) deliver(from, to event.Peer) error {
	ev, cmds, ok := s.f.Deliver(from, to, s.now, nil)
	if !ok {
		return fmt.Errorf("nothing is on its way from %d to %d", from, to)
	}
	s.last, s.lastTo = &ev, to
	fmt.Fprintf(&s.out, "%d < %v\n", to, ev)
	s.print(to, cmds)
	return nil
}

func (s *script) done(a args) error {
	p := a.core()
	batch := s.f.Core(p).Running()
	if batch == nil {
		return fmt.Errorf("subserver %d is idle", p)
	}
	res := &event.StepResult{Batch: batch.ID}
	for _, x := range a[1:] {
		if x.Key == "at" {
			continue
		}
		row := event.RowResult{Req: reqID(x.Key)}
		for i, v := range x.Vals {
			n, _ := strconv.Atoi(v)
			key, val, _ := strings.Cut(v, "=")
			switch {
			case i == 0:
				row.Output.Token = event.Token(n)
			case i == 1 && v == "drop":
				row.Action = event.Drop
			case i == 1 && v == "truncate":
				row.Action = event.Truncate
			case key == "at":
				row.At, _ = strconv.Atoi(val)
			case key == "stop":
				row.Stop, _ = strconv.Atoi(val)
			case key == "hold":
				row.Hold, _ = strconv.Atoi(val)
			case i == 1 && v == "keep":
			case i == 2:
				row.Dest = event.Peer(n)
			case key == "budget":
				row.Budget, _ = strconv.Atoi(val)
			case key == "fields":
				row.Fields = []byte(val)
			case key == "state":
				row.State = []byte(val)
			case key == "fault":
				row.Fault = val
			default:
				return fmt.Errorf("what is %q?", v)
			}
		}
		res.Rows = append(res.Rows, row)
	}
	s.step(p, event.Event{Kind: event.StepDone, Step: res})
	return nil
}

func (s *script) inject(a args) {
	m := &event.PeerReq{
		ID: a.req(1), From: event.Peer(a.num("from")), Hop: uint32(a.num("hop")), Loc: a.num("loc"),
		Suffix: a.tokens("suffix"), Seen: a.nums("seen"),
		Limits: event.Limits{PromptLen: a.num("prompt"), MaxLen: a.num("max")},
		Hold:   a.num("hold"), Emitted: a.num("emitted"), Cut: a.has("cut"),
	}
	for _, p := range a.nums("writers") {
		m.Writers = append(m.Writers, event.Peer(p))
	}
	for st := event.New; st <= event.Resend; st++ {
		if st.String() == a.str("status") {
			m.Status = st
		}
	}
	s.step(a.core(), event.Event{Kind: event.PeerIn, Peer: m})
}

func (s *script) show() {
	for i := range s.f.Len() {
		c := s.f.Core(event.Peer(i))
		l := c.Load()
		fmt.Fprintf(&s.out, "%d: waiting=%d ready=%d running=%d pending=%d active=%d B=%d kv=%d/%d",
			i, l.Waiting, l.Ready, l.Running, l.Pending, l.Active, l.B, l.KVUsed, l.KVTotal)
		if _, cached, _ := c.KV(); s.rows {
			fmt.Fprintf(&s.out, " cached=%d", cached)
		}
		s.out.WriteString("\n")
		for _, id := range c.Requests() {
			v, _ := c.View(id)
			fmt.Fprintf(&s.out, "   r%d %v held=%d fed=%d hop=%d tokens=%v", id, v.Phase, len(v.Tokens), v.Fed, v.Hop, v.Tokens)
			if v.Emitted < len(v.Tokens) {
				fmt.Fprintf(&s.out, " emitted=%d", v.Emitted)
			}
			if len(v.State)+len(v.Fields) > 0 {
				fmt.Fprintf(&s.out, " state=%s fields=%s", v.State, v.Fields)
			}
			s.out.WriteString("\n")
		}
	}
	for _, m := range slices.Clone(s.f.InFlight()) {
		what := fmt.Sprintf("active %d", m.Active)
		if m.Peer != nil {
			what = m.Peer.String()
		}
		fmt.Fprintf(&s.out, "%d->%d: %s\n", m.From, m.To, what)
	}
}
