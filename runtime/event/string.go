package event

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var kindNames = [...]string{"?", "arrive", "dispatch", "step-done", "peer-in", "active", "wake", "stop", "cancel", "set-policy", "busy"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "?"
}

var cmdNames = [...]string{"?", "admit", "reject", "run-batch", "send-peer", "tell-active", "emit", "finish", "free", "wake-at", "note", "tell-busy", "preempt"}

func (k CmdKind) String() string {
	if int(k) < len(cmdNames) {
		return cmdNames[k]
	}
	return "?"
}

func (v VerdictKind) String() string {
	if v == Append {
		return "append"
	}
	return "commit"
}

// String is one line for scripts and logs: kind, time, then what the kind uses.
func (ev Event) String() string {
	head := fmt.Sprintf("%v @%v", ev.Kind, time.Duration(ev.At))
	switch ev.Kind {
	case Arrive:
		if ev.Arrival == nil {
			return fmt.Sprintf("%s r%d nothing", head, ev.Req)
		}
		return fmt.Sprintf("%s r%d prompt=%v max=%d eos=%v", head, ev.Req, ev.Arrival.Prompt, ev.Arrival.MaxTokens, ev.Arrival.EOS)
	case StepDone:
		return head + " " + ev.Step.String()
	case PeerIn:
		return head + " " + ev.Peer.String() + ev.Verdict.tail()
	case Active:
		return fmt.Sprintf("%s n=%d", head, ev.N)
	case Wake:
		return fmt.Sprintf("%s gen=%d", head, ev.Gen)
	case Stop:
		return fmt.Sprintf("%s r%d pos=%d", head, ev.Req, ev.Pos)
	case Cancel:
		if ev.Pos > 0 {
			return fmt.Sprintf("%s r%d pos=%d", head, ev.Req, ev.Pos)
		}
		return fmt.Sprintf("%s r%d", head, ev.Req)
	case SetPolicy:
		return head + " " + ev.Policy.String()
	case Busy:
		return fmt.Sprintf("%s from=%d n=%d until=%v", head, ev.From, ev.N, time.Duration(ev.Until))
	}
	return head
}

func (v Verdict) tail() string {
	s := ""
	if v.Kind == Append {
		s = fmt.Sprintf(" %v=%v", v.Kind, v.Ids)
	}
	if v.Stop != 0 {
		s += fmt.Sprintf(" stop=%d", v.Stop)
	}
	if v.Fault != "" {
		s += fmt.Sprintf(" fault=%q", v.Fault)
	}
	return s
}

func (p *Policy) String() string {
	if p == nil {
		return "nothing"
	}
	w := time.Duration(p.W)
	switch p.Kind {
	case Fixed:
		return fmt.Sprintf("%v B=%v W=%v", p.Kind, p.B, w)
	case Table:
		return fmt.Sprintf("%v B=%v W=%v", p.Kind, p.Table, w)
	case LookAhead:
		if p.Forecast == nil {
			return fmt.Sprintf("%v W=%v", p.Kind, w)
		}
		return fmt.Sprintf("%v step=%v share=%v latency=%v W=%v", p.Kind, p.Forecast.Step, p.Forecast.Share, time.Duration(p.Forecast.Latency), w)
	}
	return p.Kind.String()
}

// Form is a policy as flags, screens and exports write it: "eager",
// "fixed:1,3", "table", "look-ahead" or "lock-step".
func (p *Policy) Form() string {
	if p.Kind == Fixed {
		return p.Kind.String() + ":" + p.Vector()
	}
	return p.Kind.String()
}

// Vector is the thresholds of a fixed policy, "1,3"; of any other its name.
func (p *Policy) Vector() string {
	if p.Kind != Fixed {
		return p.Kind.String()
	}
	parts := make([]string, len(p.B))
	for i, b := range p.B {
		parts[i] = strconv.Itoa(b)
	}
	return strings.Join(parts, ",")
}

func (s *StepResult) String() string {
	if s == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "b%d", s.Batch)
	for i := range s.Rows {
		row := &s.Rows[i]
		fmt.Fprintf(&b, " r%d:%d %v", row.Req, row.Output.Token, row.Action)
		if row.Action == Truncate {
			fmt.Fprintf(&b, "(%d)", row.At)
		}
		fmt.Fprintf(&b, ">%d", row.Dest)
		if row.Hold != 0 {
			fmt.Fprintf(&b, " hold=%d", row.Hold)
		}
		if row.Stop != 0 {
			fmt.Fprintf(&b, " stop=%d", row.Stop)
		}
		if row.Scored {
			fmt.Fprintf(&b, " score=%g", row.Score)
		}
		if row.Budget != 0 {
			fmt.Fprintf(&b, " budget=%d", row.Budget)
		}
		if row.Fault != "" {
			fmt.Fprintf(&b, " fault=%q", row.Fault)
		}
	}
	if s.Err != "" {
		fmt.Fprintf(&b, " err=%q", s.Err)
	}
	return b.String()
}

func (m *PeerReq) String() string {
	if m == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v r%d from=%d hop=%d loc=%d", m.Status, m.ID, m.From, m.Hop, m.Loc)
	if len(m.Suffix) > 0 {
		fmt.Fprintf(&b, " suffix=%v", m.Suffix)
	}
	if m.Seen != nil {
		fmt.Fprintf(&b, " seen=%v", m.Seen)
	}
	if m.Budget != 0 {
		fmt.Fprintf(&b, " budget=%d", m.Budget)
	}
	if m.Err != "" {
		fmt.Fprintf(&b, " err=%q", m.Err)
	}
	if m.held() {
		fmt.Fprintf(&b, " hold=%d emitted=%d writers=%v", m.Hold, m.Emitted, m.Writers)
	}
	if m.Cut {
		b.WriteString(" cut")
	}
	return b.String()
}

func (batch *Batch) String() string {
	if batch == nil {
		return "nothing"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "b%d %v ready=%d B=%d", batch.ID, batch.Rule, batch.Ready, batch.B)
	for i := range batch.Rows {
		row := &batch.Rows[i]
		fmt.Fprintf(&b, " r%d@%d%v", row.Req, row.Start, row.Tokens)
		if row.Prefill {
			b.WriteString("p")
		}
		if row.Cached > 0 {
			fmt.Fprintf(&b, " cached=%d", row.Cached)
		}
		if !row.Sample {
			b.WriteString(" part")
		}
	}
	return b.String()
}

// String is one line for scripts and logs.
func (cmd Command) String() string {
	switch cmd.Kind {
	case Admit:
		return fmt.Sprintf("admit r%d active=%d", cmd.Req, cmd.N)
	case Reject:
		return fmt.Sprintf("reject r%d: %s", cmd.Req, cmd.Text)
	case RunBatch:
		return "run " + cmd.Batch.String()
	case SendPeer:
		return fmt.Sprintf("send to=%d %v", cmd.To, cmd.Peer)
	case TellActive:
		return fmt.Sprintf("tell active=%d", cmd.N)
	case Emit:
		s := fmt.Sprintf("emit r%d pos=%d token=%d", cmd.Req, cmd.Pos, cmd.Token)
		if cmd.Wrote > 0 {
			s += fmt.Sprintf(" by=%d", cmd.Wrote-1)
		}
		return s
	case Finish:
		s := fmt.Sprintf("finish r%d %v n=%d", cmd.Req, cmd.Reason, cmd.N)
		if cmd.Text != "" {
			s += ": " + cmd.Text
		}
		return s
	case Free:
		return fmt.Sprintf("free r%d", cmd.Req)
	case WakeAt:
		return fmt.Sprintf("wake at=%v gen=%d", time.Duration(cmd.At), cmd.Gen)
	case TellBusy:
		return fmt.Sprintf("tell busy n=%d until=%v", cmd.N, time.Duration(cmd.At))
	case Preempt:
		return fmt.Sprintf("preempt r%d n=%d", cmd.Req, cmd.N)
	case Note:
		var b strings.Builder
		fmt.Fprintf(&b, "note %v", cmd.Note)
		if cmd.Req != 0 {
			fmt.Fprintf(&b, " r%d", cmd.Req)
		}
		if cmd.N != 0 {
			fmt.Fprintf(&b, " n=%d", cmd.N)
		}
		if cmd.Text != "" {
			b.WriteString(": " + cmd.Text)
		}
		return b.String()
	}
	return cmd.Kind.String()
}
