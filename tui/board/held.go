package board

import (
	"slices"

	"tokenrouter/runtime/event"
)

// maxDrops is how many discarded candidates of one position are kept.
const maxDrops = 8

// drop files a candidate that is no token.
func (r *request) drop(d decision) {
	if len(r.drops) < maxDrops {
		r.drops = append(r.drops, d)
	}
}

// settle files the newest decision once its commands are seen: a candidate that
// was discarded, or one that was committed and is held back.
func (r *request) settle() {
	d := r.last
	r.last = decision{}
	switch {
	case d.row == nil:
	case d.row.Action != event.Keep && !d.overruled:
		r.drop(d)
	case d.row.Hold > 0:
		r.kept = append(r.kept, d)
	}
}

// heldBack is how many tokens are committed and held back from the client.
func (r *request) heldBack() int {
	n := len(r.kept)
	if d := &r.last; d.row != nil && d.row.Hold > 0 && (d.row.Action == event.Keep || d.overruled) {
		n++
	}
	return n
}

// overrule notes that the core did not follow the newest decision and committed
// the candidate. Where nothing is held back the emit behind it says so.
func (r *request) overrule(p event.Peer, text string) {
	if d := &r.last; d.row != nil && d.core == p && d.row.Hold > 0 && text != d.row.Fault {
		d.overruled = true
	}
}

// passedOn files what a request leaves behind that goes on with the text of a
// message: tokens that were held back and are not in it were taken back.
func (m *Model) passedOn(r *request, msg *event.PeerReq) {
	last := r.last
	if last.row != nil && last.row.Action == event.Truncate && !last.overruled {
		end := msg.Loc + len(msg.Suffix)
		i := slices.IndexFunc(r.kept, func(d decision) bool { return d.pos >= end })
		if i < 0 {
			i = len(r.kept)
		}
		for _, d := range r.kept[i:] {
			d.taken, d.shown = true, m.shown(d.row.Output.Token)
			r.drop(d)
		}
		r.kept = r.kept[:i]
	}
	r.settle()
}

// decided finds the decision that committed a token which writer wrote.
func (r *request) decided(writer event.Peer, cmd *event.Command) (by decision) {
	fits := func(d *decision) bool {
		return d.row != nil && d.core == writer && d.row.Output.Token == cmd.Token
	}
	if d := &r.last; d.row != nil && d.core == writer && (d.row.Hold == 0 || d.pos == cmd.Pos) {
		if fits(d) {
			by = *d
		}
		r.last = decision{}
		return by
	}
	i := slices.IndexFunc(r.kept, func(d decision) bool { return d.pos == cmd.Pos && fits(&d) })
	if i >= 0 {
		by = r.kept[i]
		r.kept = slices.Delete(r.kept, i, i+1)
	}
	return by
}

// dropsAt takes out the discarded candidates of a position.
func (r *request) dropsAt(pos int) (drops []decision) {
	i := slices.IndexFunc(r.drops, func(d decision) bool { return d.row.Hold > 0 && d.pos > pos })
	if i < 0 {
		drops, r.drops = r.drops, nil
		return drops
	}
	drops, r.drops = r.drops[:i:i], slices.Clone(r.drops[i:])
	return drops
}
