package main

import (
	"strings"
	"testing"
)

// Faults of one place that differ in their numbers are one cause; those of other lines
// or with other words are not.
func TestFaultsByCause(t *testing.T) {
	var f faults
	for _, text := range []string{
		"TRUNCATE(85) after TRUNCATE(85) here; the positions of a subserver must rise",
		"mine.lua:14: route returned 7; legal are STAY, HOME and to(role)",
		"TRUNCATE(117) after TRUNCATE(120) here; the positions of a subserver must rise",
		"mine.lua:15: route returned 7; legal are STAY, HOME and to(role)",
		"mine.lua:14: route returned 8.5; legal are STAY, HOME and to(role)",
		"mine.lua:14: stack overflow",
		"mine.lua:14: route returned 7; legal are STAY, HOME and to(role)",
		"mine.lua:14: stack overflow",
	} {
		f.add(text)
	}
	var out strings.Builder
	f.print(&out)
	want := `tokenrouter: router fault, 3 times, such as: mine.lua:14: route returned 7; legal are STAY, HOME and to(role)
tokenrouter: router fault, 2 times, such as: TRUNCATE(85) after TRUNCATE(85) here; the positions of a subserver must rise
tokenrouter: router fault, 2 times: mine.lua:14: stack overflow
tokenrouter: router fault, 1 time: mine.lua:15: route returned 7; legal are STAY, HOME and to(role)
`
	if out.String() != want {
		t.Errorf("printed\n%s", out.String())
	}
}
