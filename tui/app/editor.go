package app

import (
	"errors"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// edit finds the router's file and an editor. A file that cannot become the router
// is what an editor is for all the more; it is tried again afterwards.
func (m *model) edit() tea.Cmd {
	rt, env := m.a.rt, m.a.cfg.Environ
	return m.later("edit", func() tea.Msg {
		path, err := rt.Edit()
		if err != nil && path == "" {
			return editMsg{err: err}
		}
		command, err := editor(env, exec.LookPath)
		return editMsg{path: path, command: command, err: err}
	})
}

var errNoEditor = errors.New("no editor found: set EDITOR")

// editor is the command of $VISUAL or $EDITOR, else vi or nano.
func editor(env []string, look func(string) (string, error)) ([]string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		for i := len(env) - 1; i >= 0; i-- {
			if v, ok := strings.CutPrefix(env[i], name+"="); ok {
				if f := strings.Fields(v); len(f) > 0 {
					return f, nil
				}
				break
			}
		}
	}
	for _, name := range []string{"vi", "nano"} {
		if path, err := look(name); err == nil {
			return []string{path}, nil
		}
	}
	return nil, errNoEditor
}

// startEditor hands the terminal to the editor. Without one the file is named,
// for another window: saving reloads it all the same.
func (m *model) startEditor(msg editMsg) tea.Cmd {
	switch {
	case msg.err != nil && msg.path != "":
		m.a.board.Say(msg.err.Error()+", or edit "+msg.path+" in another window; saving reloads it", true)
		return nil
	case msg.err != nil:
		m.a.board.Say("the router cannot be edited: "+msg.err.Error(), true)
		return nil
	}
	args := append(append([]string(nil), msg.command[1:]...), msg.path)
	return tea.ExecProcess(exec.Command(msg.command[0], args...), func(err error) tea.Msg {
		return editedMsg{msg.path, err}
	})
}

// takeEdited takes a file that was no router when the editor opened it, and so is
// not watched.
func (m *model) takeEdited(path string) tea.Cmd {
	return m.later("take", func() tea.Msg {
		_, err := m.a.rt.Edit()
		return takenMsg{path, err}
	})
}
