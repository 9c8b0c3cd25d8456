package export

import (
	"io"
	"path/filepath"

	"tokenrouter/sessions/rows"
	"tokenrouter/sessions/store"
)

// Session is what the exporters need: the records and the names around them.
type Session struct {
	rows.Source
	Name    string
	Vocab   [][]byte          // bytes of every token id
	Roles   []string          // of the subservers, in order
	Routers map[string]string // hash to base name, beside those on the tape
}

// JSONL writes the token rows of a recorded session, see Session.JSONL.
func JSONL(w io.Writer, o *store.Opened) error {
	s, err := Of(o)
	if err != nil {
		return err
	}
	_, err = s.JSONL(w)
	return err
}

// Perfetto writes the trace of a recorded session, see Session.Perfetto.
func Perfetto(w io.Writer, o *store.Opened) error {
	s, err := Of(o)
	if err != nil {
		return err
	}
	_, err = s.Perfetto(w)
	return err
}

// Of makes an opened session ready for export.
func Of(o *store.Opened) (*Session, error) {
	vocab, err := o.Vocab()
	if err != nil {
		return nil, err
	}
	m := &o.Manifest
	s := &Session{
		Source:  o,
		Name:    filepath.Base(o.Path),
		Vocab:   vocab,
		Routers: map[string]string{m.Router.Hash: m.Router.File},
	}
	for i := range m.Models {
		s.Roles = append(s.Roles, m.Models[i].Role)
	}
	return s, nil
}
