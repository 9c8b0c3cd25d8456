package app

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"tokenrouter/tui/board"
	"tokenrouter/tui/frame"
	"tokenrouter/tui/keys"
	"tokenrouter/tui/theme"
)

// model is the program's state besides the board.
type model struct {
	a     *App
	w, h  int
	opts  theme.Options
	theme *theme.Theme
	info  board.Info
	at    keys.Context
	under keys.Context // where esc goes back to
	bye   bool         // quitting

	helpTop int // first line of the help that is shown
	helpEnd int // where it ends
	planTop int // the same of the plan
	planEnd int
	laid    laid
}

func newModel(a *App) *model {
	m := &model{a: a, info: a.rt.Info()}
	m.opts = theme.Options{
		Profile: colorprofile.TrueColor,
		Light:   a.cfg.Theme == "light",
		Palette: theme.Palette(a.cfg.Palette),
		ASCII:   a.cfg.ASCII,
	}
	m.theme = theme.New(m.opts)
	return m
}

// Messages of commands that have ended.
type (
	exportedMsg struct {
		path string
		err  error
	}
	editMsg struct {
		path    string
		command []string
		err     error
	}
	editedMsg struct {
		path string
		err  error
	}
	takenMsg  editedMsg
	copiedMsg struct {
		what  string
		text  string
		path  string
		osc   bool
		err   error
		bytes int
	}
	closedMsg struct{}
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	if m.a.cfg.Theme == "" || m.a.cfg.Theme == "auto" {
		return tea.RequestBackgroundColor
	}
	return nil
}

// Update implements tea.Model. It does no I/O.
func (m *model) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	m.a.cfg.Do("screen update", func() { cmd = m.update(msg) })
	return m, cmd
}

func (m *model) update(msg tea.Msg) tea.Cmd {
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	switch msg := msg.(type) {
	case frameMsg:
		m.status()
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.ColorProfileMsg:
		m.opts.Profile = msg.Profile
		m.retheme()
	case tea.BackgroundColorMsg:
		m.opts.Light = !msg.IsDark()
		m.retheme()
	case tea.KeyPressMsg:
		return m.key(msg.String())
	case exportedMsg:
		m.report(msg.err, "export failed: ", "exported to "+msg.path)
	case editMsg:
		return m.startEditor(msg)
	case editedMsg:
		m.report(msg.err, "the editor failed: ", "edited "+msg.path)
		m.status()
		if msg.err == nil && m.a.board.Status().Editable != msg.path {
			return m.takeEdited(msg.path)
		}
	case takenMsg:
		m.report(msg.err, "edited "+msg.path+", but it cannot be taken: ", "edited "+msg.path)
		m.status()
	case copiedMsg:
		return m.copied(msg)
	case closedMsg:
		return tea.Quit
	}
	return nil
}

// later is a command that runs under the guard.
func (m *model) later(name string, fn func() tea.Msg) tea.Cmd {
	return func() (msg tea.Msg) {
		m.a.cfg.Do(name, func() { msg = fn() })
		return msg
	}
}

// status brings the board up to how the runtime runs now.
func (m *model) status() { m.a.board.SetStatus(m.a.rt.Status()) }

func (m *model) retheme() {
	m.theme = theme.New(m.opts)
	m.a.board.SetTheme(m.theme)
}

// say answers a key in the line above the keys.
func (m *model) say(format string, args ...any) { m.a.board.Say(fmt.Sprintf(format, args...), false) }

// report answers with an error or a success.
func (m *model) report(err error, what, done string) {
	if err != nil {
		m.a.board.Say(what+err.Error(), true)
		return
	}
	m.a.board.Say(done, false)
}

// View implements tea.Model.
func (m *model) View() tea.View {
	text := ""
	m.a.cfg.Do("screen draw", func() {
		m.a.mu.Lock()
		defer m.a.mu.Unlock()
		text = m.screen(m.a.rt.Now())
	})
	v := tea.NewView(text)
	v.AltScreen = true
	return v
}

// screen is the board, and what lies over it.
func (m *model) screen(now int64) string {
	box := m.dialog()
	if box != "" && m.laid.still(box, m.w, m.h, now) {
		return m.laid.text
	}
	text := frame.Text(m.a.board.Draw(m.w, m.h, now, []frame.Row{m.hints()}))
	if box == "" {
		m.laid = laid{}
		return text
	}
	m.laid = laid{box, m.over(text, box), m.w, m.h, now}
	return m.laid.text
}
