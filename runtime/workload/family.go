package workload

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// FamilyStory is the family of the problems of [Light].
const FamilyStory = "story"

// family is one kind of problems.
type family struct {
	name string
	tell func(r *splitMix) Problem
}

// families in the order of a mixture. The order and what a tell function draws
// are part of what a seed means: embedded models are trained on these streams.
var families = []family{
	{FamilyStory, Light.story},
	{"ledger", tellLedger},
	{"units", tellUnits},
	{"calendar", tellCalendar},
	{"sort", tellSort},
	{"count", tellCount},
}

// Families lists the families of problems, the story first. All have answers that
// can be checked and thoughts whose every step follows from what stands before it.
func Families() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.name
	}
	return names
}

// NewFamily returns the endless stream of problems of a family. That of the story
// is the stream of [NewGenerator] with [Light].
func NewFamily(name string, seed uint64) (*Generator, error) {
	for _, f := range families {
		if f.name == name {
			return &Generator{streams: []stream{f.stream(seed)}}, nil
		}
	}
	return nil, fmt.Errorf("no family of problems %q; there are %s", name, strings.Join(Families(), ", "))
}

// NewMixture returns the problems of all families by turns: problem n is number
// n/F of family n mod F, as [NewFamily] gives it with the same seed.
func NewMixture(seed uint64) *Generator {
	g := &Generator{}
	for _, f := range families {
		g.streams = append(g.streams, f.stream(seed))
	}
	return g
}

// stream sets the families of one seed apart, by name so that further ones change
// nothing. The story keeps the stream that the embedded models were trained on.
func (f *family) stream(seed uint64) stream {
	if f.name != FamilyStory {
		h := fnv.New64a()
		h.Write([]byte(f.name))
		seed ^= h.Sum64()
	}
	return stream{f.name, splitMix{seed}, f.tell}
}
