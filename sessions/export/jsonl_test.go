package export

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/format"
	"tokenrouter/sessions/rows"
	"tokenrouter/sessions/store"
	"tokenrouter/sessions/tapetest"
)

// hardVocab has a text for every way in which text breaks files: line ends of
// all kinds, quotes, NUL, commas, halves of characters (cases K3, A10).
func hardVocab(n int) [][]byte {
	v := [][]byte{
		[]byte("\n"), []byte("\r\n"), []byte(`"`), []byte("\x00"), []byte("a,b"), []byte(`\`),
		[]byte("\u2028"), []byte("\u2029"), []byte("\u0085"), []byte("\x7f"), []byte("\x1b[31m"), []byte("\t"),
		{0xe3, 0x81},
		{0x93},
		{0xff, 'x', 0xfe},
		[]byte("こ"), []byte("\U0001f600"),
		{},
		[]byte("</script>&"), []byte("\ufffd"),
	}
	for len(v) < n {
		v = append(v, []byte(" w"+strconv.Itoa(len(v))))
	}
	return v
}

func session(t testing.TB, c tapetest.Config) (*Session, tapetest.Outcome) {
	t.Helper()
	recs, out, err := tapetest.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	models := c.Models
	if models == 0 {
		models = 2
	}
	return &Session{Source: rows.Memory(recs), Name: "test", Vocab: hardVocab(64), Roles: event.Roles(models)}, out
}

func jsonlOf(t testing.TB, s *Session) ([]byte, Counts) {
	t.Helper()
	var b bytes.Buffer
	n, err := s.JSONL(&b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), n
}

// keysOf lists the keys of a JSON object in their order.
func keysOf(t *testing.T, line string) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("%s: %v, %v", line, tok, err)
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.(string))
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return keys
}

// imported is a row as another tool reads it.
type imported struct {
	Request   uint64      `json:"request"`
	Task      string      `json:"task"`
	Pos       int         `json:"pos"`
	TokenID   int32       `json:"token_id"`
	Text      string      `json:"text"`
	Model     string      `json:"model"`
	Dest      string      `json:"dest"`
	Action    string      `json:"action"`
	Entropy   *float32    `json:"entropy"`
	Top1      *float32    `json:"top1"`
	Router    *string     `json:"router"`
	Batch     *string     `json:"batch"`
	WaitedUs  json.Number `json:"waited_us"`
	TUs       json.Number `json:"t_us"`
	Bytes     []int       `json:"bytes"`
	Score     *float32    `json:"score"`
	To        *int        `json:"truncate_to"`
	TakenBack bool        `json:"taken_back"`
	Committed *bool       `json:"committed"`
}

func importRows(t *testing.T, b []byte) (out []imported) {
	t.Helper()
	for line := range strings.Lines(string(b)) {
		var r imported
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, r)
	}
	return out
}

func TestKeysAndTheirOrder(t *testing.T) {
	s, _ := session(t, tapetest.Config{Requests: 30, Seed: 1, Cancel: 0.2})
	b, _ := jsonlOf(t, s)
	want := "request task pos token_id text model dest action entropy top1 router batch waited_us t_us"
	seen := map[string]int{}
	for line := range strings.Lines(string(b)) {
		keys := strings.Join(keysOf(t, line), " ")
		rest, ok := strings.CutPrefix(keys, want)
		if !ok {
			t.Fatalf("keys %q, want %q", keys, want)
		}
		seen[rest]++
	}
	for _, rest := range []string{"", " bytes", " committed", " bytes committed"} {
		if seen[rest] == 0 {
			t.Errorf("no row ends with %q", rest)
		}
		delete(seen, rest)
	}
	if len(seen) > 0 {
		t.Errorf("rows end with %v", seen)
	}
}

// The committed rows are the emitted tokens that the results report, request by
// request, and give each request's text back. Case K3: as many lines as rows,
// whatever the text holds. Case A10: real bytes where a token is no whole
// character.
func TestRowsAreTheEmittedTokens(t *testing.T) {
	for _, c := range []tapetest.Config{
		{Requests: 40, Seed: 1},
		{Requests: 40, Seed: 2, Models: 3, Cancel: 0.3},
		{Requests: 40, Seed: 3, Hold: 4},
	} {
		s, want := session(t, c)
		b, n := jsonlOf(t, s)
		taken, cuts := 0, 0
		results := 0
		for _, r := range s.Source.(rows.Memory) {
			if res, ok := r.Host.(*tape.Result); ok {
				results += res.Tokens
			}
		}
		if n.Committed != results || n.Dropped != want.Drops || results == 0 {
			t.Errorf("%d committed rows of %d emitted tokens, %d dropped rows of %d", n.Committed, results, n.Dropped, want.Drops)
		}
		if lines := bytes.Count(b, []byte("\n")); lines != n.Committed+n.Dropped {
			t.Errorf("%d lines for %d rows", lines, n.Committed+n.Dropped)
		}
		for _, bad := range []string{"\r", "\x00", "\u0085", "\u2028", "\u2029", "\x1b", "\x7f"} {
			if bytes.Contains(b, []byte(bad)) {
				t.Errorf("the file holds %q as it is", bad)
			}
		}
		got := map[uint64][]event.Token{}
		for _, r := range importRows(t, b) {
			raw := s.Vocab[r.TokenID]
			if r.Bytes == nil {
				if r.Text != string(raw) {
					t.Fatalf("token %d is %q, the row says %q", r.TokenID, raw, r.Text)
				}
			} else {
				var back []byte
				for _, v := range r.Bytes {
					back = append(back, byte(v))
				}
				if !bytes.Equal(back, raw) || !strings.Contains(r.Text, "\ufffd") {
					t.Fatalf("token %d is %v, the row says %v and %q", r.TokenID, raw, r.Bytes, r.Text)
				}
			}
			if r.Committed == nil {
				got[r.Request] = append(got[r.Request], r.TokenID)
			} else if *r.Committed || r.TakenBack != (r.Action == "KEEP") || (r.To != nil) != (r.Action == "TRUNCATE") {
				t.Fatalf("row %+v", r)
			}
			if r.TakenBack {
				taken++
			}
			if r.To != nil {
				cuts++
				if *r.To >= r.Pos || r.Score == nil {
					t.Fatalf("row %+v", r)
				}
			}
			if r.Task != "task-"+strconv.FormatUint(r.Request, 10) {
				t.Fatalf("row %+v", r)
			}
		}
		for id, text := range want.Text {
			if !slices.Equal(got[uint64(id)], text) {
				t.Errorf("request %d: rows %v, client %v", id, got[uint64(id)], text)
			}
		}
		if cuts != want.Truncated || taken < cuts || cuts > 0 != (c.Hold > 0) {
			t.Errorf("%d rows take %d tokens back, %d decisions did", cuts, taken, want.Truncated)
		}
	}
}

// Case K3: what was exported and read in again is exported to the same bytes.
func TestReimportGivesTheSameBytes(t *testing.T) {
	s, _ := session(t, tapetest.Config{Requests: 25, Seed: 4, Models: 3, Hold: 3})
	b, _ := jsonlOf(t, s)
	if again, _ := jsonlOf(t, s); !bytes.Equal(b, again) {
		t.Fatal("two exports of one tape differ")
	}
	x := &rows.Index{Tasks: map[event.ReqID]string{}, Routers: map[string]string{}}
	w := jsonl{s: s, x: x, roles: s.Roles, text: map[event.Token]string{}, bytes: map[event.Token]string{}}
	var out []byte
	for _, r := range importRows(t, b) {
		x.Tasks[event.ReqID(r.Request)] = r.Task
		row := rows.Row{
			Req: event.ReqID(r.Request), Pos: r.Pos, Token: r.TokenID, At: nanos(t, r.TUs), WaitedNs: nanos(t, r.WaitedUs),
			Model: peer(t, r.Model), Dest: peer(t, r.Dest), Committed: r.Committed == nil,
			Output: &event.Output{Entropy: *r.Entropy, Top1: *r.Top1},
		}
		row.Truncated = r.TakenBack
		if r.Score != nil {
			row.Score, row.Scored = *r.Score, true
		}
		switch r.Action {
		case "DROP":
			row.Action = event.Drop
		case "TRUNCATE":
			row.Action, row.Cut = event.Truncate, *r.To
		}
		file, hash, _ := strings.Cut(*r.Router, "@")
		row.Router, x.Routers[hash] = hash, file
		role, number, _ := strings.Cut(*r.Batch, "/")
		if role != r.Model {
			t.Fatalf("batch %s of %s", *r.Batch, r.Model)
		}
		var err error
		if row.Batch, err = strconv.ParseUint(number, 10, 64); err != nil {
			t.Fatal(err)
		}
		out = w.row(out, &row)
	}
	if !bytes.Equal(b, out) {
		t.Errorf("%d bytes, %d after the way back", len(b), len(out))
	}
}

func peer(t *testing.T, role string) event.Peer {
	t.Helper()
	i := slices.Index(event.Roles(3), role)
	if i < 0 {
		t.Fatalf("no subserver is the %q one", role)
	}
	return event.Peer(i)
}

func nanos(t *testing.T, us json.Number) int64 {
	t.Helper()
	whole, frac, _ := strings.Cut(us.String(), ".")
	n, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A row with every field at its odd values, byte for byte.
func TestOneRow(t *testing.T) {
	s := &Session{Vocab: hardVocab(20), Roles: event.Roles(2), Routers: map[string]string{"abc": "r2r.lua"}}
	x := &rows.Index{Tasks: map[event.ReqID]string{7: "t\n1"}, Routers: map[string]string{}}
	for _, c := range []struct {
		row  rows.Row
		want string
	}{
		{
			rows.Row{
				Req: 7, Pos: 12, Token: 2, Committed: true, Dest: 1, Output: &event.Output{Entropy: 0.1, Top1: 1},
				Router: "abc", Batch: 17, WaitedNs: 1500, At: 2_000_001,
			},
			`{"request":7,"task":"t\n1","pos":12,"token_id":2,"text":"\"","model":"small","dest":"large","action":"KEEP","entropy":0.1,"top1":1,"router":"r2r.lua@abc","batch":"small/17","waited_us":1.5,"t_us":2000.001}`,
		},
		{
			rows.Row{
				Req: 7, Pos: 13, Token: 13, Model: 1, Action: event.Drop,
				Output: &event.Output{Entropy: float32(math.NaN()), Top1: 1e-9}, Router: "zzz", Batch: 3,
			},
			`{"request":7,"task":"t\n1","pos":13,"token_id":13,"text":"` + "\ufffd" + `","model":"large","dest":"small","action":"DROP","entropy":null,"top1":1e-09,"router":"zzz","batch":"large/3","waited_us":0,"t_us":0,"bytes":[147],"committed":false}`,
		},
		{
			rows.Row{
				Req: 7, Pos: 14, Token: 13, Action: event.Truncate, Cut: 11, Score: 0.25, Scored: true, Dest: 1,
				Output: &event.Output{}, Router: "abc", Batch: 3,
			},
			`{"request":7,"task":"t\n1","pos":14,"token_id":13,"text":"` + "\ufffd" + `","model":"small","dest":"large","action":"TRUNCATE","entropy":0,"top1":0,"router":"r2r.lua@abc","batch":"small/3","waited_us":0,"t_us":0,"bytes":[147],"score":0.25,"truncate_to":11,"committed":false}`,
		},
		{
			rows.Row{Req: 7, Pos: 11, Token: 2, Truncated: true, Output: &event.Output{}, Router: "abc", Batch: 3},
			`{"request":7,"task":"t\n1","pos":11,"token_id":2,"text":"\"","model":"small","dest":"small","action":"KEEP","entropy":0,"top1":0,"router":"r2r.lua@abc","batch":"small/3","waited_us":0,"t_us":0,"taken_back":true,"committed":false}`,
		},
		{
			rows.Row{Req: 8, Pos: 1, Token: 999, Committed: true, Model: 5, Dest: -1, At: -1},
			`{"request":8,"task":"","pos":1,"token_id":999,"text":"","model":"?","dest":"?","action":"KEEP","entropy":null,"top1":null,"router":null,"batch":null,"waited_us":null,"t_us":-0.001}`,
		},
	} {
		w := jsonl{s: s, x: x, roles: s.Roles, text: map[event.Token]string{}, bytes: map[event.Token]string{}}
		if got := string(w.row(nil, &c.row)); got != c.want+"\n" {
			t.Errorf("got  %swant %s", got, c.want)
		}
	}
}

func TestMicros(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0", 1: "0.001", 10: "0.01", 999: "0.999", 1000: "1", 1100: "1.1", -1500: "-1.5",
		math.MaxInt64: "9223372036854775.807", math.MinInt64: "-9223372036854775.808",
	} {
		if got := string(appendMicros(nil, ns)); got != want {
			t.Errorf("%d ns are %s µs, want %s", ns, got, want)
		}
	}
}

// A recorded session, also one whose tape was cut, exports through its folder.
func TestExportOfARecordedSession(t *testing.T) {
	mem, _ := session(t, tapetest.Config{Requests: 12, Seed: 3})
	recs := mem.Source.(rows.Memory)
	m := store.Manifest{
		StartedAt: time.Unix(1, 0),
		Models:    []store.Model{{Role: "small"}, {Role: "large"}},
		Router:    store.Router{File: "r2r.lua", Hash: tapetest.HashBefore, Text: "return"},
	}
	s, err := store.Create(t.TempDir(), m, store.Options{Vocab: mem.Vocab})
	if err != nil {
		t.Fatal(err)
	}
	tp := tape.New()
	s.Record(tp)
	tp.Append(recs...)
	if err := s.Close("done"); err != nil {
		t.Fatal(err)
	}
	o, err := store.Open(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	want, _ := jsonlOf(t, mem)
	var got, trace bytes.Buffer
	if err := errors.Join(JSONL(&got, o), Perfetto(&trace, o)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("the recorded session exports other rows than the tape")
	}
	if !json.Valid(trace.Bytes()) {
		t.Error("the trace is no JSON")
	}
	cutTape(t, filepath.Join(s.Path(), "tape.trlog"), recs)
	if o, err = store.Open(s.Path()); err != nil {
		t.Fatal(err)
	}
	n := int(o.Report.Records)
	if o.Report.Cut == nil || n < len(recs)/2 || n >= len(recs) {
		t.Fatalf("%d of %d records, %s", n, len(recs), &o.Report)
	}
	mem.Source = recs[:n]
	want, _ = jsonlOf(t, mem)
	got.Reset()
	if err := JSONL(&got, o); err != nil || !bytes.Equal(want, got.Bytes()) {
		t.Errorf("the cut session: %v, %d bytes, want %d", err, got.Len(), len(want))
	}
	if err := os.Remove(filepath.Join(s.Path(), "vocab.zst")); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"jsonl": func() error { return JSONL(&got, o) }, "perfetto": func() error { return Perfetto(&got, o) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "vocab.zst") {
			t.Errorf("%s without a vocabulary: %v", name, err)
		}
	}
}

// cutTape writes a tape of many frames without its last byte, as a killed
// process may leave it.
func cutTape(t *testing.T, path string, recs []tape.Record) {
	t.Helper()
	e, err := format.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	b := format.Header()
	for i := range recs {
		if err := e.Append(&recs[i]); err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			b = e.Seal(b)
		}
	}
	b = e.Seal(b)
	if err := os.WriteFile(path, b[:len(b)-1], 0o600); err != nil {
		t.Fatal(err)
	}
}

type fullDisk struct{ room int }

var errFull = errors.New("no space left on device")

func (f *fullDisk) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWriteErrors(t *testing.T) {
	s, _ := session(t, tapetest.Config{Requests: 30, Seed: 1})
	for _, room := range []int{0, 100_000} {
		if _, err := s.JSONL(&fullDisk{room}); !errors.Is(err, errFull) {
			t.Errorf("JSONL with room for %d: %v", room, err)
		}
		if _, err := s.Perfetto(&fullDisk{room}); !errors.Is(err, errFull) {
			t.Errorf("Perfetto with room for %d: %v", room, err)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, b := range hardVocab(20) {
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := appendString(nil, s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		var want strings.Builder
		for _, r := range s {
			want.WriteRune(r)
		}
		if back != want.String() {
			t.Fatalf("%q came back as %q", s, back)
		}
		lines := 0
		for sc := bufio.NewScanner(bytes.NewReader(b)); sc.Scan(); {
			lines++
		}
		if lines != 1 {
			t.Fatalf("%q takes %d lines", s, lines)
		}
	})
}

func BenchmarkJSONL(b *testing.B) {
	s, _ := session(b, tapetest.Config{Requests: 200, Seed: 1})
	var n Counts
	var size int
	b.ReportAllocs()
	for b.Loop() {
		var buf bytes.Buffer
		var err error
		if n, err = s.JSONL(&buf); err != nil {
			b.Fatal(err)
		}
		size = buf.Len()
	}
	per := float64(n.Committed + n.Dropped)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/per, "ns/row")
	b.ReportMetric(float64(size)/per, "B/row")
}

func BenchmarkPerfetto(b *testing.B) {
	s, _ := session(b, tapetest.Config{Requests: 200, Seed: 1})
	var n TraceCounts
	var size int
	b.ReportAllocs()
	for b.Loop() {
		var buf bytes.Buffer
		var err error
		if n, err = s.Perfetto(&buf); err != nil {
			b.Fatal(err)
		}
		size = buf.Len()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n.Batches), "ns/batch")
	b.ReportMetric(float64(size)/float64(n.Batches), "B/batch")
}
