package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func few(embedded bool) *Rows {
	r := &Rows{Meta: Meta{
		Models: map[string]string{"small": "a", "large": "b"}, Hashes: map[string]string{"small": "12", "large": "34"},
		Hidden: 3, Vocab: 9, TopK: 2, Embedded: embedded, Label: Outcome, Workload: "light", Seed: 7, Problems: 2, Text: "repair", Tokens: 160,
	}}
	for i := range int32(5) {
		r.Problem, r.Pos = append(r.Problem, i/3), append(r.Pos, 10+i)
		r.Token, r.Other = append(r.Token, i), append(r.Other, i+i%2)
		r.Labels, r.Differ = append(r.Labels, uint8(i/4)), append(r.Differ, uint8(i%2))
		f := float32(i)
		r.States, r.Logits = append(r.States, f, -f, 0.5), append(r.Logits, f+1, f)
		r.Measures = append(r.Measures, f/8, 0.75, 0.25, 3)
		if embedded {
			r.Embeddings = append(r.Embeddings, f, f, f)
		}
	}
	return r
}

// What is saved is read again, and the same rows make the same bytes.
func TestSave(t *testing.T) {
	for _, embedded := range []bool{true, false} {
		want := few(embedded)
		path := filepath.Join(t.TempDir(), "rows.safetensors")
		if err := want.Save(path); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		want.Format = format
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v, saved %+v", got, want)
		}
		var a, b bytes.Buffer
		if err := want.write(&a); err != nil {
			t.Fatal(err)
		}
		if err := got.write(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("the second file differs, %v", err)
		}
	}
}

// A file that says what it does not hold is refused.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *Rows)
		want  string
	}{
		"rows":     {func(r *Rows) { r.Pos = r.Pos[:4] }, "column pos has 4 rows"},
		"label":    {func(r *Rows) { r.Labels[2] = 3 }, "row 2 is labelled 3"},
		"order":    {func(r *Rows) { r.Problem[0] = 9 }, "do not lie together"},
		"infinite": {func(r *Rows) { r.Logits[3] *= 1e38; r.Logits[3] *= 1e38 }, "column logits: row 1 holds"},
		"no width": {func(r *Rows) { r.TopK, r.Logits = 0, nil }, "gives column logits 0 values"},
	} {
		r := few(false)
		r.Logits[3] = 2
		c.spoil(r)
		var b bytes.Buffer
		err := r.write(&b)
		if err == nil {
			_, err = parse(b.Bytes())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var b bytes.Buffer
	if err := few(false).write(&b); err != nil {
		t.Fatal(err)
	}
	for from, c := range map[string]struct{ to, want string }{
		`\"hidden\":3`: {`\"hidden\":5`, "column hidden has the shape [5 3]"},
		`\"format\":1`: {`\"format\":2`, "it has format 2"},
		metaKey:        {"tokenrouter.rowz", "head collect writes such files"},
	} {
		bad := bytes.Replace(b.Bytes(), []byte(from), []byte(c.to), 1)
		if _, err := parse(bad); bytes.Equal(bad, b.Bytes()) || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.to, err)
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("no tensors"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

// Foreign bytes are answered with an error or with rows that hold together.
func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	if err := few(true).write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data)
		if err != nil {
			return
		}
		for i := range r.Len() {
			_, _, _ = r.Input(i, r.TopK), r.Labels[i], r.Differ[i]
		}
	})
}

// Groups number the problems that have rows; a cut leaves the first rows.
func TestGroupsAndCut(t *testing.T) {
	r := few(true)
	r.Problem = []int32{2, 2, 5, 5, 9}
	if of, n := r.Groups(); n != 3 || !reflect.DeepEqual(of, []int32{0, 0, 1, 1, 2}) {
		t.Errorf("%v of %d", of, n)
	}
	whole := few(true)
	r = few(true)
	r.Cut(2)
	for i := range 2 {
		if !reflect.DeepEqual(r.Input(i, 2), whole.Input(i, 2)) {
			t.Errorf("row %d is another one", i)
		}
	}
	if r.Len() != 2 || len(r.Embeddings) != 6 || len(r.Differ) != 2 {
		t.Errorf("%+v", r)
	}
}
