package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/runtime/model/tokenizer"
	"tokenrouter/runtime/model/train"
	"tokenrouter/runtime/workload"
)

// Seeds of problems. Models are trained on seeds below 300 and judged by
// workload.EvaluationSeed; while they are trained they are watched on watchSeed.
const (
	seedsBelow = 300
	watchSeed  = seedsBelow - 1
)

// part is a family's share of a mixture: a weight that may move in a line from
// the first step to the last.
type part struct {
	name     string
	from, to float64
}

// every stands for one of each family in a mixture.
const every = "all"

// parseMix reads "story=2,ledger=1,drill=2:0.5" or "all,drill=3".
func parseMix(text string) ([]part, error) {
	var fields []string
	for _, f := range strings.Split(text, ",") {
		if f == every {
			fields = append(fields, workload.Families()...)
		} else {
			fields = append(fields, f)
		}
	}
	var parts []part
	for _, field := range fields {
		name, weight, given := strings.Cut(strings.TrimSpace(field), "=")
		p := part{name: name, from: 1, to: 1}
		if _, ok := drills[name]; !ok && !slices.Contains(workload.Families(), name) {
			return nil, fmt.Errorf("the mixture %q has %q; there are %s, %s and %s", text, name, strings.Join(workload.Families(), ", "), strings.Join(slices.Sorted(maps.Keys(drills)), ", "), every)
		}
		if slices.ContainsFunc(parts, func(q part) bool { return q.name == name }) {
			return nil, fmt.Errorf("the mixture %q has %s twice", text, name)
		}
		if given {
			from, to, moves := strings.Cut(weight, ":")
			if !moves {
				to = from
			}
			var err, err2 error
			p.from, err = strconv.ParseFloat(from, 64)
			p.to, err2 = strconv.ParseFloat(to, 64)
			if err != nil || err2 != nil || !(p.from >= 0 && p.to >= 0 && p.from+p.to < 1e6) {
				return nil, fmt.Errorf("the mixture %q: the weight of %s is %q; give a number, or two as from:to", text, name, weight)
			}
		}
		parts = append(parts, p)
	}
	for _, at := range []float64{0, 1} {
		if weights(parts, at) <= 0 {
			return nil, fmt.Errorf("the mixture %q has no weight", text)
		}
	}
	return parts, nil
}

func (p part) at(progress float64) float64 { return p.from + (p.to-p.from)*progress }

func weights(parts []part, progress float64) (sum float64) {
	for _, p := range parts {
		sum += p.at(progress)
	}
	return sum
}

// encoder turns problems into what a model learns from.
type encoder struct {
	tok                *tokenizer.Tokenizer
	think, answer, end int32
	start              int32
}

func newEncoder(tok *tokenizer.Tokenizer) (*encoder, error) {
	e := &encoder{tok: tok}
	for text, id := range map[string]*int32{"<think>": &e.think, "</think>": &e.answer, "<|im_end|>": &e.end, "<|endoftext|>": &e.start} {
		var ok bool
		if *id, ok = tok.ID(text); !ok {
			return nil, fmt.Errorf("the tokenizer has no %s", text)
		}
	}
	return e, nil
}

// prompt is a question as a session asks it.
func (e *encoder) prompt(question string) ([]int32, error) {
	return e.tok.EncodeChat([]tokenizer.Message{{Role: "user", Content: question}})
}

// problem is a question with its answer as the model is to write it; the answer
// is learnt.
func (e *encoder) problem(p workload.Problem) (train.Example, error) {
	ids, err := e.prompt(p.Question)
	if err != nil {
		return train.Example{}, err
	}
	known := len(ids)
	ids = append(ids, e.think)
	ids = append(ids, e.tok.Encode("\n"+p.Thought)...)
	ids = append(ids, e.answer)
	ids = append(ids, e.tok.Encode("\n\n"+p.Answer)...)
	ids = append(ids, e.end)
	learn := make([]bool, len(ids))
	for i := known; i < len(ids); i++ {
		learn[i] = true
	}
	return train.Example{IDs: ids, Learn: learn}, nil
}

// place is where a mixture's streams stand; it is the note of a saved state.
type place struct {
	Mix   string         `json:"mix"`
	Seed  uint64         `json:"seed"`
	Draw  uint64         `json:"draw"`  // state of the draw between families
	Drawn map[string]int `json:"drawn"` // examples of each family so far
	CPU   float64        `json:"cpu"`   // seconds so far
}

// mixture is the endless examples of a run, a function of mix and seed.
type mixture struct {
	place
	parts   []part
	enc     *encoder
	streams []func() (train.Example, error)
	err     error
}

// newMixture goes on from a place; fresh ones have nothing drawn.
func newMixture(at place, enc *encoder) (*mixture, error) {
	if at.Seed >= watchSeed {
		return nil, fmt.Errorf("data seed %d: models are trained on seeds below %d, so that no problem they are judged by is known to them", at.Seed, watchSeed)
	}
	parts, err := parseMix(at.Mix)
	if err != nil {
		return nil, err
	}
	m := &mixture{place: at, parts: parts, enc: enc}
	if m.Drawn == nil {
		m.Drawn, m.Draw = map[string]int{}, at.Seed
	}
	for i, p := range parts {
		next, err := enc.stream(p.name, at.Seed)
		if err != nil {
			return nil, err
		}
		m.streams = append(m.streams, next)
		for range m.Drawn[p.name] {
			m.take(i)
		}
	}
	return m, m.err
}

// stream is the endless examples of a family or a drill.
func (e *encoder) stream(name string, seed uint64) (func() (train.Example, error), error) {
	if line, ok := drills[name]; ok {
		r := splitMix{seed ^ drillSeed}
		return func() (train.Example, error) { return e.drill(line, &r), nil }, nil
	}
	g, err := workload.NewFamily(name, seed)
	return func() (train.Example, error) { return e.problem(g.Problem()) }, err
}

// take is the next example of a part. The first error stays in err.
func (m *mixture) take(i int) train.Example {
	e, err := m.streams[i]()
	if err != nil && m.err == nil {
		m.err = err
	}
	return e
}

// next draws a family by its weight and takes its next example.
func (m *mixture) next(progress float64) train.Example {
	r := splitMix{m.Draw}
	u := float64(r.draw()>>11) / (1 << 53) * weights(m.parts, progress)
	m.Draw = r.state
	i := 0
	for i < len(m.parts)-1 && u >= m.parts[i].at(progress) {
		u -= m.parts[i].at(progress)
		i++
	}
	m.Drawn[m.parts[i].name]++
	return m.take(i)
}

// watched are examples of each family that are not learnt.
func watched(enc *encoder, families []string, n int) (map[string][]train.Example, error) {
	out := map[string][]train.Example{}
	for _, f := range families {
		g, err := workload.NewFamily(f, watchSeed)
		if err != nil {
			return nil, err
		}
		for range n {
			e, err := enc.problem(g.Problem())
			if err != nil {
				return nil, err
			}
			out[f] = append(out[f], e)
		}
	}
	return out, nil
}
