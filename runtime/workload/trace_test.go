package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func row(at float64, lengths ...int32) traceRow {
	r := traceRow{at: time.Duration(at * 1e9)}
	if len(lengths) > 0 {
		r.prompt, r.output = lengths[0], lengths[1]
	}
	return r
}

// The files of published traces are read as they are.
func TestReadTraceForms(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []traceRow
	}{
		"offsets": {"0.5\n1\n\n 2.25 \n", []traceRow{row(0.5), row(1), row(2.25)}},
		"offsets with lengths": {
			"0,10,20\n1.5, 30, 40\n",
			[]traceRow{row(0, 10, 20), row(1.5, 30, 40)},
		},
		"named": {"\uFEFFprompt,offset,output,more\r\n10,0,20,x\r\n30,1.5,40,y\r\n", []traceRow{row(0, 10, 20), row(1.5, 30, 40)}},
		"Azure 2023": {
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
			[]traceRow{row(0, 374, 44), {at: 4314579 * time.Microsecond, prompt: 396, output: 109}},
		},
		"Azure 2024": {
			"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 23:59:59.500000+00:00,2162,5\n2024-05-11 00:00:00.750000+00:00,2399,6\n",
			[]traceRow{row(0, 2162, 5), row(1.25, 2399, 6)},
		},
		"BurstGPT": {
			"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,0,0,0,API log\n",
			[]traceRow{row(5, 472, 18), row(45, 1, 1)},
		},
		"BurstGPT with sessions": {
			"Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,2.5,ChatGPT,472,18,490,Conversation log\n",
			[]traceRow{row(5, 472, 18)},
		},
		"Qwen-Bailian, Mooncake": {
			`{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}` + "\n" +
				`{"timestamp": 3.052, "input_length": 7319, "output_length": 490, "hash_ids": []}`,
			[]traceRow{row(0, 6758, 500), row(3.052, 7319, 490)},
		},
		"lines of JSON": {`{"offset": 1}` + "\n\n" + `{"offset": 1, "prompt": null}`, []traceRow{row(1), row(1)}},
		"dates in JSON": {
			`{"time": "2026-01-01T00:00:00Z"}` + "\n" + `{"time": "2026-01-01T00:00:02.5Z"}`,
			[]traceRow{row(0), row(2.5)},
		},
	} {
		got, err := ReadTrace(strings.NewReader(c.in), "t")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(got.rows, c.want) || got.HasLengths() != (c.want[0].prompt > 0) || got.Len() != len(c.want) {
			t.Errorf("%s: read %+v, want %+v", name, got.rows, c.want)
		}
	}
}

func TestReadTraceErrors(t *testing.T) {
	const named = "offset,prompt,output\n"
	for name, c := range map[string]struct{ in, want string }{
		"empty":           {"", "f holds no arrival; write one time in seconds a line"},
		"names only":      {named, "f holds no arrival"},
		"no time":         {"a,b\n1,2", "f:1: no column is a time; one has to be named offset, timestamp"},
		"many, unnamed":   {"1,2,3,4", "f:1: the first line names no columns and has 4; name them"},
		"prompt alone":    {"offset,prompt\n1,2", "f:1: prompt and output lengths come together"},
		"two, unnamed":    {"1,2", "f:1: prompt and output lengths come together"},
		"narrow":          {named + "1,2\n", "f:2: line has 2 columns, the first one has 3"},
		"wide":            {"1\n2,3\n", "f:2: line has 2 columns, the first one has 1"},
		"empty cell":      {named + "1,,3\n", "f:2: column 2 is empty"},
		"falls":           {"1\n2\n\n1.5\n", "f:4: arrival at 1.5s comes before the one above it at 2s; sort the file by time"},
		"negative":        {"-1\n", "f:1: time -1 is outside 0 to"},
		"not a number":    {"NaN\n1\n", "f:1: no column is a time"},
		"NaN":             {"1\nNaN\n", "f:2: time NaN is outside 0 to"},
		"unix time":       {"1700158546\n", "f:1: time 1700158546 is outside 0 to 31622400 seconds; times count from the start of the run, so subtract the first"},
		"no date":         {"1\nlater\n", `f:2: time "later" is neither a number of seconds nor a date`},
		"date, then not":  {"time\n2023-11-16 18:15:46\n3\n", `f:3: time "3" is neither a number of seconds nor a date`},
		"not, then date":  {"1\n2023-11-16 18:15:46\n", `f:2: time "2023-11-16 18:15:46" is of another form than those before`},
		"date falls":      {"time\n2023-11-16 18:15:46\n2023-11-15 18:15:46\n", "f:3: arrival at -24h0m0s comes before"},
		"years":           {"time\n2023-11-16 18:15:46\n2026-11-15 18:15:46\n", `f:3: time "2026-11-15 18:15:46" is more than a year behind the first one`},
		"part of a token": {named + "1,2.5,3\n", "f:2: prompt 2.5 is not a number of tokens from 0 to 1048576"},
		"long output":     {named + "1,2,1e9\n", "f:2: output 1e9 is not a number of tokens"},
		"word":            {named + "1,x,3\n", "f:2: prompt x is not a number of tokens"},
		"broken JSON":     {"{\n", "f:1: line is no arrival: unexpected end of JSON input; write"},
		"JSON, no time":   {`{"prompt": 3, "output": 4}`, "f:1: arrival has no time; give it a field offset, timestamp"},
		"JSON, half":      {`{"offset": 3, "output": 4}`, "f:1: prompt and output lengths come together"},
		"JSON, some":      {`{"offset": 3}` + "\n" + `{"offset": 3, "prompt": 1, "output": 4}`, "f:2: some arrivals have lengths and some have none"},
		"JSON, then CSV":  {`{"offset": 3}` + "\n4", "f:2: line is no arrival"},
		"JSON list":       {`{"offset": [3]}`, `f:1: time "[3]" is neither a number`},
		"too long":        {"1\n" + strings.Repeat(" ", MaxLine+1), "f:2: line is longer than 1048576 bytes"},
	} {
		tr, err := ReadTrace(strings.NewReader(c.in), "f")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || tr != nil {
			t.Errorf("%s: read %+v with error %v, want %s", name, tr, err, c.want)
		}
	}
	broken := errors.New("disk is gone")
	_, err := ReadTrace(io.MultiReader(strings.NewReader("1\n"), iotest.ErrReader(broken)), "f")
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "f:2: ") {
		t.Errorf("error %v", err)
	}
}

// zeros is an endless file of arrivals at 0.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	n := len(p) &^ 1
	for i := 0; i < n; i += 2 {
		p[i], p[i+1] = '0', '\n'
	}
	return n, nil
}

// A file without end is refused and does not fill the memory.
func TestReadTraceIsBounded(t *testing.T) {
	want := fmt.Sprintf("f:%d: a trace holds at most %d arrivals; cut it into parts", MaxTrace+1, MaxTrace)
	if _, err := ReadTrace(zeros{}, "f"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte("0.5\n1\n"))
	f.Add([]byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"))
	f.Add([]byte("\uFEFFoffset\r\n1e3\r\n"))
	f.Add([]byte(`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46]}`))
	f.Add([]byte("{\"offset\": \"\"}\n{"))
	f.Add([]byte(",\n\"1\",2\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		tr, err := ReadTrace(bytes.NewReader(in), "f")
		if err != nil {
			if tr != nil || !strings.HasPrefix(err.Error(), "f") {
				t.Fatalf("%+v with error %v", tr, err)
			}
			return
		}
		before := time.Duration(0)
		for i, r := range tr.rows {
			has := r.prompt > 0 && r.output > 0
			if r.at < before || r.at > longest || has != tr.lengths || r.prompt < 0 || r.output < 0 {
				t.Fatalf("row %d is %+v", i, r)
			}
			before = r.at
		}
		if len(tr.rows) == 0 || tr.Rate() < 0 {
			t.Fatalf("%d rows at %g/s", len(tr.rows), tr.Rate())
		}
	})
}

// The requests of a trace are as long as it says, and the same for a seed.
func TestTraceTasks(t *testing.T) {
	tr, err := ReadTrace(strings.NewReader("0,10,20\n1,300,4\n"), "f")
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewTraceTasks(tr, 5, 100)
	if err != nil {
		t.Fatal(err)
	}
	if a.Longest() != 304 {
		t.Errorf("the longest needs %d positions", a.Longest())
	}
	b, _ := NewTraceTasks(tr, 5, 100)
	for i, want := range [][2]int{{10, 20}, {300, 4}} {
		task, ok := a.Next()
		again, _ := b.Next()
		if !ok || len(task.Prompt) != want[0] || task.MaxTokens != want[1] || task.ID != fmt.Sprint(i) {
			t.Errorf("task %d is %+v", i, task)
		}
		if !slices.Equal(task.Prompt, again.Prompt) {
			t.Errorf("task %d has another prompt the second time", i)
		}
	}
	if task, ok := a.Next(); ok {
		t.Errorf("a third task %+v", task)
	}
	plain, _ := ReadTrace(strings.NewReader("1\n"), "f")
	if _, err := NewTraceTasks(plain, 1, 100); err == nil || !strings.Contains(err.Error(), "f says nothing of lengths") {
		t.Errorf("error %v", err)
	}
}

func BenchmarkReadTrace(b *testing.B) {
	var file bytes.Buffer
	file.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	zero := time.Date(2023, 11, 16, 18, 15, 46, 0, time.UTC)
	const rows = 20_000
	for i := range rows {
		fmt.Fprintf(&file, "%s,%d,%d\n", zero.Add(time.Duration(i)*time.Millisecond).Format("2006-01-02 15:04:05.0000000"), i%4000+1, i%500+1)
	}
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadTrace(bytes.NewReader(file.Bytes()), "f"); err != nil {
			b.Fatal(err)
		}
	}
}
