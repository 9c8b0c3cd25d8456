package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/runner/emulated"
	"tokenrouter/runtime/tape"
	"tokenrouter/runtime/workload"
	"tokenrouter/sessions/store"
)

// recorded is a cast that repeats what the models of a session said to its
// requests, which come again in the same order.
func (f *clusterFlags) recorded() (*cast, error) {
	s, err := f.session()
	if err != nil {
		return nil, err
	}
	c := &cast{models: s.Manifest.Models, tokens: filepath.Base(s.Path), prompt: neverBegan, kv: s.Manifest.KVTokens}
	if c.vocab, err = s.Vocab(); err != nil {
		return nil, err
	}
	c.special = func(id event.Token) bool { return slices.Contains(c.eos, id) }
	c.heads = newRecordedHeads(filepath.Base(s.Path), s)
	said, err := emulated.NewRecording(s.Records(), len(c.models), f.Seed, c.heads.headOf)
	if err != nil {
		return nil, fmt.Errorf("--tokens %s: %w", f.Tokens, err)
	}
	if !s.Report.Whole() {
		c.lacks = append(c.lacks, s.Report.String())
	}
	if n := said.LeftOut(); n > 0 {
		c.lacks = append(c.lacks, fmt.Sprintf("%s has %d rows more than the %d that are kept; what they said is drawn from the others", f.Tokens, n, emulated.MaxRows))
	}
	for i := range c.models {
		if said.Rows(i) == 0 {
			return nil, fmt.Errorf("--tokens %s: its %s was never asked, so there is nothing to repeat; record one in which all models write", f.Tokens, c.models[i].Role)
		}
		c.runners = append(c.runners, emulated.New(said, i))
	}
	c.said, c.heads.said = said, said
	if err := c.take(s); err != nil {
		return nil, fmt.Errorf("--tokens %s: %w", f.Tokens, err)
	}
	return c, nil
}

// session is the recorded one that --tokens names. From here on --tokens is its
// name: what is latest may be another one by the next look.
func (f *clusterFlags) session() (*store.Opened, error) {
	path, err := findSession(f.Sessions, f.Tokens)
	if err != nil {
		return nil, fmt.Errorf("--tokens %s is neither models nor drawn, and no session: %w", f.Tokens, err)
	}
	if filepath.Base(f.Tokens) == f.Tokens {
		f.Tokens = filepath.Base(path)
	}
	return store.Open(path)
}

// neverBegan is the prompt of a request that has none in the recording.
func neverBegan(string) ([]event.Token, error) {
	return nil, errors.New("this request did not begin when it was recorded either")
}

// take makes tasks of the requests of a session, one for each in their order, as
// what models said is found by the number of the request.
func (c *cast) take(s *store.Opened) error {
	at := map[event.ReqID]int{}
	for rec, err := range s.Records() {
		if err != nil {
			return err
		}
		switch h := rec.Host.(type) {
		case *tape.Request:
			at[h.Req] = len(c.tasks)
			t := workload.Task{ID: h.Task, Question: h.Question, Answer: h.Answer, HasAnswer: h.HasAnswer, Family: h.Family}
			if h.Check != "" {
				if t.Check, err = workload.ParseCheck(h.Check); err != nil {
					return fmt.Errorf("task %s: %w", h.Task, err)
				}
			}
			c.tasks = append(c.tasks, t)
		}
		if rec.Event == nil || rec.Event.Kind != event.Arrive {
			continue
		}
		i, ok := at[rec.Event.Req]
		if a := rec.Event.Arrival; ok {
			c.tasks[i].Prompt, c.tasks[i].MaxTokens = a.Prompt, a.MaxTokens
			c.context = max(c.context, len(a.Prompt)+a.MaxTokens)
			if c.eos == nil {
				c.eos = a.EOS
			}
		}
	}
	if len(c.tasks) == 0 {
		return errors.New("no request arrived in it")
	}
	return nil
}
