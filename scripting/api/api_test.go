package api

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// What was generated is as the catalogue says now.
func TestGeneratedFilesAreFresh(t *testing.T) {
	const again = "is not as the catalogue has it; run: go generate ./scripting/api"
	got, err := os.ReadFile("../../docs/tokenrouter.lua")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(Annotations()) {
		t.Error("docs/tokenrouter.lua " + again)
	}
	page, err := os.ReadFile("../../docs/lua.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Tables(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != want {
		t.Error("docs/lua.md " + again)
	}
}

func TestTablesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"<!-- api: rows -->\n<!-- api end -->": `a table "rows" that nobody knows`,
		"<!-- api: row -->\n<!-- api end -->":  `no table "destinations"`,
	} {
		if _, err := Tables(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEditorSettingsAreJSON(t *testing.T) {
	if !json.Valid([]byte(Editor)) {
		t.Error(Editor)
	}
}

// Every entry says what it is, once, in a form that editors read: one line, types
// that exist.
func TestCatalogue(t *testing.T) {
	known := map[string]bool{}
	for _, name := range strings.Fields("Role Destination Action Verdict integer number string boolean table fun new alive small middle large") {
		known[name] = true
	}
	for _, c := range Classes() {
		known[c.Name] = true
	}
	word := regexp.MustCompile(`[A-Za-z]+`)
	check := func(where string, list []Entry) {
		seen := map[string]bool{}
		for _, e := range list {
			if seen[e.Name] || e.Name == "" || e.Doc == "" || strings.Contains(e.Doc, "\n") {
				t.Errorf("%s: %+v", where, e)
			}
			seen[e.Name] = true
			types := append([]string{e.Type}, e.Returns...)
			for _, p := range e.Params {
				types = append(types, p.Type)
			}
			for _, typ := range types {
				for _, w := range word.FindAllString(typ, -1) {
					if !known[w] {
						t.Errorf("%s.%s: the type %s is declared nowhere", where, e.Name, w)
					}
				}
			}
		}
	}
	check("globals", globals)
	check("hooks", hooks)
	for _, c := range Classes() {
		check(c.Name, c.Fields)
	}
}
