package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner/emulated"
	"tokenrouter/scripting"
	"tokenrouter/sessions/store"
)

// recordedHeads answer r.score with what heads said when a session was recorded.
type recordedHeads struct {
	session string // as it was named
	from    *store.Opened
	said    scores
	known   map[string]string // whose scores a router's decisions have, by its hash; "" where nobody knows
	unclear string            // hash of a router whose scores may be of several heads

	mu   sync.Mutex
	used map[string]bool
}

// scores are those of a recording, or of one whose requests come again.
type scores interface {
	Heads() []string
	Scores(model int, head string) int
	Score(model int, head string, id event.ReqID, pos int) (float64, error)
}

func newRecordedHeads(name string, s *store.Opened) *recordedHeads {
	return &recordedHeads{session: name, from: s, known: map[string]string{}, used: map[string]bool{}}
}

// over is the same heads for other scores of theirs.
func (r *recordedHeads) over(said scores) *recordedHeads {
	return &recordedHeads{session: r.session, from: r.from, said: said, unclear: r.unclear, used: map[string]bool{}}
}

// headOf implements [emulated.HeadOf].
func (r *recordedHeads) headOf(hash string) string {
	name, ok := r.known[hash]
	if !ok {
		name = r.whose(hash)
		r.known[hash] = name
		if name == "" {
			r.unclear = hash
		}
	}
	return name
}

// whose says which of the heads in the manifest, which has their hashes, a router
// asks, if it asks only one.
func (r *recordedHeads) whose(hash string) string {
	m := &r.from.Manifest
	if len(m.Heads) == 1 && m.Closed != nil { // all that were loaded
		return m.Heads[0].Name
	}
	text, err := r.from.RouterText(hash)
	if err != nil {
		return ""
	}
	p, err := scripting.Compile("router.lua", text)
	if err != nil || len(p.Heads) != 1 || !onlyByName(text, p.Heads[0]) {
		return ""
	}
	if !slices.ContainsFunc(m.Heads, func(h store.Head) bool { return h.Name == p.Heads[0] }) {
		return "" // nobody wrote down which weights it had
	}
	return p.Heads[0]
}

var (
	comment  = regexp.MustCompile(`--[^\n]*`)
	asksHead = regexp.MustCompile(`[.:]\s*score\b|\[\s*["']score["']`)
)

// onlyByName says that a text takes r.score only where it asks for that head: a name
// in a variable may be another one.
func onlyByName(text, head string) bool {
	text = comment.ReplaceAllString(text, "")
	byName := regexp.MustCompile(`[.:]\s*score\s*\(\s*["']` + regexp.QuoteMeta(head) + `["']\s*\)`)
	return len(asksHead.FindAllString(text, -1)) == len(byName.FindAllString(text, -1))
}

// check says why a head cannot be asked.
func (r *recordedHeads) check(head string) error {
	all := r.said.Heads()
	switch {
	case slices.Contains(all, head):
		r.mu.Lock()
		r.used[head] = true
		r.mu.Unlock()
		return nil
	case r.unclear != "":
		return fmt.Errorf("%s does not say which head the scores of its router %s are of; record one under a router that asks %q alone", r.session, r.unclear, head)
	case len(all) == 0:
		return fmt.Errorf("%s has no score of a head; heads need --tokens models, or a session whose router asked them", r.session)
	}
	return fmt.Errorf("%s has no score of the head %q, only of %s; record one under a router that asks it", r.session, head, strings.Join(all, ", "))
}

// heads are those that were checked, as the recording's manifest has them.
func (r *recordedHeads) heads() (out []store.Head) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.from.Manifest.Heads {
		if r.used[h.Name] {
			out = append(out, h)
		}
	}
	return out
}

// scorer is for the subserver of a model.
func (r *recordedHeads) scorer(models []store.Model, p event.Peer) scripting.Scorer {
	return &recordedScorer{recordedHeads: r, models: models, model: int(p)}
}

// recordedScorer implements scripting.Scorer.
type recordedScorer struct {
	*recordedHeads
	models []store.Model
	model  int
}

func (s *recordedScorer) Check(head string) error { return s.check(head) }

func (s *recordedScorer) Score(head string, row *scripting.Row) (float64, error) {
	if err := s.reads(head, s.model); err != nil {
		return 0, err
	}
	return s.said.Score(s.model, head, row.Req, row.Pos)
}

// reads says that the head has no score of a model's rows.
func (s *recordedScorer) reads(head string, model int) error {
	if s.said.Scores(model, head) > 0 {
		return nil
	}
	if err := s.check(head); err != nil {
		return err
	}
	var at []string
	for i, m := range s.models {
		if s.said.Scores(i, head) > 0 {
			at = append(at, m.Role)
		}
	}
	return fmt.Errorf("%s has scores of the head for the %s model's rows, this one is of the %s", s.session, strings.Join(at, " and the "), s.models[model].Role)
}

// Reads says that a head is asked about rows of a role that it has no score of.
func (s *recordedScorer) Reads(head, role string) error {
	i := slices.IndexFunc(s.models, func(m store.Model) bool { return m.Role == role })
	if i < 0 {
		return fmt.Errorf("no model of %s is the %s one", s.session, role)
	}
	return s.reads(head, i)
}

// Threshold is what a recorded head was calibrated for.
func (s *recordedScorer) Threshold(head string) (threshold float64, ok bool) {
	if s.check(head) != nil {
		return 0, false
	}
	for _, h := range s.from.Manifest.Heads {
		if h.Name == head {
			return h.Threshold, h.Threshold > 0
		}
	}
	return 0, false
}

var (
	_ scores = (*emulated.Recording)(nil)
	_ scores = (*emulated.Again)(nil)
)
