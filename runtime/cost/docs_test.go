package cost

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The description of the file names every field and set, and its example is read.
func TestFormatIsDescribed(t *testing.T) {
	data, err := os.ReadFile("../../docs/format/cost-profile.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	_, example, ok := strings.Cut(text, "```json\n")
	example, _, end := strings.Cut(example, "```")
	if !ok || !end {
		t.Fatal("there is no example")
	}
	if _, err := Read(strings.NewReader(example), "the example"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(text, "`{n, mape, bias}`") {
		t.Error("the errors of a fit are not described")
	}
	var names []string
	for _, v := range []any{Profile{}, Row{}, Box{}, Quality{}, Errors{}, Stalls{}} {
		for f := range reflect.TypeOf(v).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	names = append(names, FeatureSets()...)
	for _, name := range names {
		if !strings.Contains(text, "`"+name+"`") && !slices.Contains([]string{"n", "mape", "bias"}, name) {
			t.Errorf("%s is not described", name)
		}
	}
}
