package board

import "strings"

// CopyText is the plain text of the picked or inspected request as the model
// wrote it, or of the token under the cursor; ok is false when there is none.
func (m *Model) CopyText(token bool) (text string, ok bool) {
	var r *request
	if in := m.UI.inspect; in != nil {
		r = in.req
		if t := in.current(); token && t != nil {
			return string(m.text(t.id)), !t.end
		}
	} else if s := m.shownSlots(); m.UI.Slot < len(s) {
		r = s[m.UI.Slot]
	}
	if r == nil || len(r.tokens) == 0 || token {
		return "", false
	}
	return m.plain(r), true
}

// plain is the kept text of a request as the model wrote it.
func (m *Model) plain(r *request) string {
	var b strings.Builder
	for i := range r.tokens {
		if !r.tokens[i].end {
			b.Write(m.text(r.tokens[i].id))
		}
	}
	return strings.ToValidUTF8(b.String(), "\ufffd")
}
