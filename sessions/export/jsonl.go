package export

import (
	"bufio"
	"io"
	"strconv"
	"unicode/utf8"

	"tokenrouter/runtime/event"
	"tokenrouter/sessions/rows"
)

// Counts says what an export wrote.
type Counts struct {
	Committed int
	Dropped   int // candidates, and tokens that were taken back
}

// JSONL writes one line per emitted token, per dropped candidate and per token
// that was taken back, in the order of the tape, with the keys
//
//	request, task, pos, token_id, text, model, dest, action, entropy, top1,
//	router, batch, waited_us, t_us
//
// and behind them "bytes" where the token's bytes are no valid UTF-8, "score"
// where the router asked a trained head, "truncate_to" behind TRUNCATE,
// "taken_back": true for a token that was, and "committed": false for what was
// never emitted. pos counts from the prompt's
// first token; model and dest are roles; entropy is in nats; batch is
// role/number; t_us is the end of the decode step in microseconds since the
// session began, waited_us how long the request was ready before it. A token
// that came with a hand-off has null in the fields of a decode step.
func (s *Session) JSONL(w io.Writer) (Counts, error) {
	var n Counts
	x, err := rows.NewIndex(s)
	if err != nil {
		return n, err
	}
	jw := jsonl{s: s, x: x, roles: rolesOf(s, x), text: map[event.Token]string{}, bytes: map[event.Token]string{}}
	bw := bufio.NewWriterSize(w, 64<<10)
	var line []byte
	for r, err := range rows.All(s, x) {
		if err != nil {
			return n, err
		}
		if r.Committed {
			n.Committed++
		} else {
			n.Dropped++
		}
		line = jw.row(line[:0], &r)
		if _, err := bw.Write(line); err != nil {
			return n, err
		}
	}
	return n, bw.Flush()
}

// rolesOf gives every subserver on the tape a role, also where the session
// names fewer.
func rolesOf(s *Session, x *rows.Index) []string {
	roles := append([]string(nil), s.Roles...)
	for i := len(roles); i < x.Cores; i++ {
		roles = append(roles, event.Role(event.Peer(i), x.Cores))
	}
	return roles
}

func role(roles []string, p event.Peer) string {
	if p < 0 || int(p) >= len(roles) {
		return "?"
	}
	return roles[p]
}

type jsonl struct {
	s     *Session
	x     *rows.Index
	roles []string
	text  map[event.Token]string // JSON of a token's text, with its quotes
	bytes map[event.Token]string // JSON of its bytes where they are no text
}

func (j *jsonl) row(b []byte, r *rows.Row) []byte {
	b = append(b, `{"request":`...)
	b = strconv.AppendUint(b, uint64(r.Req), 10)
	b = append(b, `,"task":`...)
	b = appendString(b, j.x.Tasks[r.Req])
	b = append(b, `,"pos":`...)
	b = strconv.AppendInt(b, int64(r.Pos), 10)
	b = append(b, `,"token_id":`...)
	b = strconv.AppendInt(b, int64(r.Token), 10)
	text, raw := j.token(r.Token)
	b = append(b, `,"text":`...)
	b = append(b, text...)
	b = append(b, `,"model":`...)
	b = appendString(b, role(j.roles, r.Model))
	b = append(b, `,"dest":`...)
	b = appendString(b, role(j.roles, r.Dest))
	b = append(b, `,"action":"`...)
	b = append(b, r.Action.String()...)
	b = append(b, '"')
	if o := r.Output; o != nil {
		b = append(b, `,"entropy":`...)
		b = appendFloat(b, o.Entropy)
		b = append(b, `,"top1":`...)
		b = appendFloat(b, o.Top1)
		b = append(b, `,"router":`...)
		b = appendString(b, j.router(r.Router))
		b = append(b, `,"batch":`...)
		b = appendString(b, role(j.roles, r.Model)+"/"+strconv.FormatUint(r.Batch, 10))
		b = append(b, `,"waited_us":`...)
		b = appendMicros(b, r.WaitedNs)
	} else {
		b = append(b, `,"entropy":null,"top1":null,"router":null,"batch":null,"waited_us":null`...)
	}
	b = append(b, `,"t_us":`...)
	b = appendMicros(b, r.At)
	if raw != "" {
		b = append(b, `,"bytes":`...)
		b = append(b, raw...)
	}
	if r.Scored {
		b = append(b, `,"score":`...)
		b = appendFloat(b, r.Score)
	}
	if r.Action == event.Truncate {
		b = append(b, `,"truncate_to":`...)
		b = strconv.AppendInt(b, int64(r.Cut), 10)
	}
	if r.Truncated {
		b = append(b, `,"taken_back":true`...)
	}
	if !r.Committed {
		b = append(b, `,"committed":false`...)
	}
	return append(b, '}', '\n')
}

// router is the name of a router version: file@hash.
func (j *jsonl) router(hash string) string {
	file, ok := j.x.Routers[hash]
	if !ok {
		file, ok = j.s.Routers[hash]
	}
	if !ok {
		return hash
	}
	return file + "@" + hash
}

// token is the JSON of a token's text, and of its bytes where these are no
// valid UTF-8. An id outside the vocabulary has no text.
func (j *jsonl) token(id event.Token) (text, raw string) {
	if text, ok := j.text[id]; ok {
		return text, j.bytes[id]
	}
	var s string
	if id >= 0 && int(id) < len(j.s.Vocab) {
		s = string(j.s.Vocab[id])
	}
	text = string(appendString(nil, s))
	j.text[id] = text
	if !utf8.ValidString(s) {
		raw = string(appendBytes(nil, s))
		j.bytes[id] = raw
	}
	return text, raw
}
