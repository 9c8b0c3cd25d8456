package rows

import (
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
)

// decided queues rows of which all is known.
func (j *join) decided(list ...Row) {
	if len(list) == 0 {
		return
	}
	s := &step{decided: true}
	for _, row := range list {
		s.rows = append(s.rows, candidate{Row: row})
	}
	j.queue = append(j.queue, s)
}

// hold keeps a committed row until its token is emitted or taken back.
func (j *join) hold(row *candidate) {
	if !row.hold || row.moved || row.Action != event.Keep {
		return
	}
	row.moved = true
	j.held[row.Req] = append(j.held[row.Req], row.Row)
}

// emitted is the row of an emitted token: the one that was held back, or where
// receive wrote the token one of its own.
func (j *join) emitted(r *tape.Record) Row {
	cmd := r.Command
	held := j.held[cmd.Req]
	i := slices.IndexFunc(held, func(row Row) bool { return row.Pos == cmd.Pos && row.Token == cmd.Token })
	if i < 0 {
		return Row{
			Seq: r.Seq, At: r.At, Req: cmd.Req, Pos: cmd.Pos, Token: cmd.Token,
			Committed: true, Model: r.Writer(), Dest: r.Writer(),
		}
	}
	row := held[i]
	row.Committed = true
	j.held[cmd.Req] = slices.Delete(held, i, i+1)
	return row
}

// taken takes out the rows of tokens that are not in the text which m passes on.
func (j *join) taken(m *event.PeerReq) []Row {
	held, end := j.held[m.ID], m.Loc+len(m.Suffix)
	i := slices.IndexFunc(held, func(row Row) bool { return row.Pos >= end })
	if i < 0 {
		return nil
	}
	gone := slices.Clone(held[i:])
	for k := range gone {
		gone[k].Truncated = true
	}
	j.held[m.ID] = slices.Delete(held, i, len(held))
	return gone
}
