package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/sessions/store"
)

// costFitCmd fits a profile from a session.
type costFitCmd struct {
	Session  string `arg:"" help:"Session: a folder, the name of one, the beginning of a name, or latest."`
	Features string `default:"split" placeholder:"SET" help:"Feature set: affine, eq9, split, hinge, legacy or cross (default: ${default})."`
	Name     string `placeholder:"NAME" help:"Name of the profile (default: fit- and the session's name)."`
	Out      string `short:"o" placeholder:"FILE" help:"Where to write; - is standard output (default: cost.json in the session's folder)."`
	Sessions string `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
}

// costName is where a fit goes unless told otherwise.
const costName = "cost.json"

func (c *costFitCmd) Run() error {
	if sets := cost.FeatureSets(); !slices.Contains(sets, c.Features) {
		return usage(fmt.Errorf("--features: feature set %q is unknown; sets are %s", c.Features, strings.Join(sets, ", ")))
	}
	path, err := findSession(c.Sessions, c.Session)
	if err != nil {
		return err
	}
	s, err := openSession(path)
	if err != nil {
		return err
	}
	p, said, err := c.fit(s)
	if err != nil {
		return err
	}
	out := cmp.Or(c.Out, filepath.Join(s.Path, costName))
	write := func(w io.Writer) error { return p.Write(w) }
	if out == "-" {
		fmt.Fprint(os.Stderr, said)
		return into(os.Stdout, "standard output", write)
	}
	if err := writeWhole(out, write); err != nil {
		return err
	}
	fmt.Print(said)
	if err := printProfile(os.Stdout, &p, defaultContext); err != nil {
		return err
	}
	_, err = fmt.Println("\nwritten to", out)
	return err
}

// fit fits the longest stretch of the session under one clock and says what it
// was.
func (c *costFitCmd) fit(s *store.Opened) (p cost.Profile, said string, err error) {
	m := &s.Manifest
	found, err := foldCosts(s.Records(), len(m.Models))
	if err != nil {
		return p, "", err
	}
	best, left := found[0], 0
	for _, f := range found[1:] {
		if f.batches() > best.batches() {
			best = f
		}
	}
	for _, f := range found {
		if f != best {
			left += f.batches()
		}
	}
	session := filepath.Base(s.Path)
	var models []cost.Measured
	var names []string
	for i := range m.Models {
		models = append(models, cost.Measured{
			Role: event.Role(event.Peer(i), len(m.Models)), Model: m.Models[i].Name, KVTokens: m.KVTokens,
			Samples: best.cores[i],
		})
		names = append(names, m.Models[i].Name)
	}
	clock := best.clockText(m)
	source := fmt.Sprintf("session %s: %s, %s", session, strings.Join(names, "+"), clock)
	if m.Machine.CPUModel != "" {
		source += ", " + m.Machine.CPUModel
	}
	p, err = cost.FitProfile(cmp.Or(c.Name, "fit-"+session), source, c.Features, models, best.messages)
	switch {
	case errors.Is(err, cost.ErrFew):
		return p, "", fmt.Errorf("session %s: %w; record a longer one, such as with tokenrouter run --requests 200, and with a router that sends to every model", session, err)
	case err != nil:
		return p, "", fmt.Errorf("session %s: %w", session, err)
	}
	said = fmt.Sprintf("clock     %s: %s\n", clock, best.meaning(m))
	if left > 0 {
		said += fmt.Sprintf("left out  %d batches under another clock or speed\n", left)
	}
	return p, said, nil
}

// clockText names the clock; sessions whose tape does not state it have that of
// the manifest.
func (s *costSamples) clockText(m *store.Manifest) string {
	text := cmp.Or(s.clock, strings.TrimSpace(m.Clock+" "+m.Profile)) + " clock"
	if s.speed != "" && s.speed != "1" {
		text += " at speed " + s.speed
	}
	return text
}

// meaning says whose times a clock's are.
func (s *costSamples) meaning(m *store.Manifest) string {
	if strings.HasPrefix(cmp.Or(s.clock, m.Clock), "live") {
		return "the times are those of the machine that it ran on"
	}
	return "the times are those that the clock kept to, not those of a machine"
}
