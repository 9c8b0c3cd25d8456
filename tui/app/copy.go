package app

import (
	"fmt"
	"os"
	"path/filepath"

	tea "charm.land/bubbletea/v2"
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
	dir := m.a.cfg.CopyDir
	if dir == "" {
		dir = m.info.Session
	}
	return m.later("copy", func() tea.Msg {
		msg := copiedMsg{text: text, bytes: len(text), osc: len(text) <= maxOSC52}
		if dir == "" {
			return msg
		}
		msg.path = filepath.Join(dir, "copy.txt")
		msg.err = os.WriteFile(msg.path, []byte(text), 0o600)
		return msg
	})
}

// copied says where the text went: the terminal does not tell whether it took
// it, so there is a file as well.
func (m *model) copied(c copiedMsg) tea.Cmd {
	file := c.path != "" && c.err == nil
	switch {
	case c.osc && file:
		m.say("copied %d bytes to the terminal's clipboard (OSC 52); also in %s", c.bytes, c.path)
	case c.osc:
		m.say("copied %d bytes to the terminal's clipboard (OSC 52)", c.bytes)
	case file:
		m.say("%d bytes are too many for the clipboard (at most %d); written to %s", c.bytes, maxOSC52, c.path)
	default:
		why := "there is no session folder"
		if c.err != nil {
			why = c.err.Error()
		}
		m.a.board.Say(fmt.Sprintf("not copied: %d bytes are too many for the clipboard (at most %d), and %s", c.bytes, maxOSC52, why), true)
	}
	if !c.osc {
		return nil
	}
	return tea.SetClipboard(c.text)
}
