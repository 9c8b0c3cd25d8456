package app

import (
	"fmt"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"

	"tokenrouter/runtime/event"
)

// maxOSC52 is how much text is handed to the terminal's clipboard: many
// terminals take no more than 100,000 bytes of base64.
const maxOSC52 = 74_000

// copy takes the plain text of a request or of one token, without borders.
func (m *model) copy(token bool) tea.Cmd {
	text, ok := m.a.board.CopyText(token)
	if !ok {
		m.say("nothing to copy yet")
		return nil
	}
	what := "the token"
	if !token {
		what = "request"
		if id, ok := m.subject(); ok {
			what = fmt.Sprintf("request #%d", id)
		}
	}
	dir := m.a.cfg.CopyDir
	if dir == "" {
		dir = m.info.Session
	}
	return m.later("copy", func() tea.Msg {
		msg := copiedMsg{what: what, text: text, bytes: len(text), osc: len(text) <= maxOSC52}
		if dir == "" {
			return msg
		}
		msg.path = filepath.Join(dir, "copy.txt")
		msg.err = os.WriteFile(msg.path, []byte(text), 0o600)
		return msg
	})
}

// subject is the request that keys are about: the one looked into, or the picked
// one.
func (m *model) subject() (id event.ReqID, ok bool) {
	if id, in := m.a.board.Inspecting(); in {
		return id, true
	}
	return m.a.board.Picked()
}

// copied says where the text went: the terminal does not tell whether it took
// it, so there is a file as well.
func (m *model) copied(c copiedMsg) tea.Cmd {
	file := c.path != "" && c.err == nil
	switch {
	case c.osc && file:
		m.say("copied %s, %d bytes, to the terminal's clipboard (OSC 52); also in %s", c.what, c.bytes, c.path)
	case c.osc:
		m.say("copied %s, %d bytes, to the terminal's clipboard (OSC 52)", c.what, c.bytes)
	case file:
		m.say("%s is too long for the clipboard, %d bytes of at most %d; written to %s", c.what, c.bytes, maxOSC52, c.path)
	default:
		why := "there is no session folder"
		if c.err != nil {
			why = c.err.Error()
		}
		m.a.board.Say(fmt.Sprintf("not copied: %s is too long for the clipboard, %d bytes of at most %d, and %s", c.what, c.bytes, maxOSC52, why), true)
	}
	if !c.osc {
		return nil
	}
	return tea.SetClipboard(c.text)
}
