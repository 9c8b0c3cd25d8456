package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/tape"
	"tokenrouter/sessions/tapetest"
)

// realTape is what a real session holds: every kind of record in use.
func realTape(t testing.TB, requests int) []tape.Record {
	t.Helper()
	recs, _, err := tapetest.Run(tapetest.Config{
		Requests: requests, Seed: 1, Models: 3, Cancel: 0.2,
		Policy: &event.Policy{Kind: event.Fixed, B: []int{1, 1, 2}, W: 40e6},
	})
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// file encodes records with a frame every so many, and says where frames begin.
func file(t testing.TB, recs []tape.Record, every int) (b []byte, frames []int) {
	t.Helper()
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	b = Header()
	for i := range recs {
		if err := e.Append(&recs[i]); err != nil {
			t.Fatal(err)
		}
		if e.Pending() == every || i == len(recs)-1 {
			frames = append(frames, len(b))
			b = e.Seal(b)
		}
	}
	return b, frames
}

func scan(t testing.TB, b []byte) Summary {
	t.Helper()
	s, err := Scan(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(b []byte, s Summary, o Options) (out []tape.Record, err error) {
	for r, err := range Records(bytes.NewReader(b), s, o) {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

func readAll(t testing.TB, b []byte, o Options) []tape.Record {
	t.Helper()
	out, err := read(b, scan(t, b), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoundTripOfARealTape(t *testing.T) {
	recs := realTape(t, 20)
	for _, every := range []int{1, 7, 1 << 20} {
		b, frames := file(t, recs, every)
		s := scan(t, b)
		want := Summary{
			Version: Version, Frames: len(frames), Records: uint64(len(recs)), FirstSeq: 1,
			LastSeq: uint64(len(recs)), LastAt: recs[len(recs)-1].At, Good: int64(len(b)),
		}
		if diff := cmp.Diff(want, s); diff != "" {
			t.Errorf("every %d: %s", every, diff)
		}
		got := readAll(t, b, Options{})
		if again, _ := file(t, got, every); !bytes.Equal(again, b) {
			t.Fatalf("every %d: what was read is written differently", every)
		}
		if every == 7 {
			if diff := cmp.Diff(recs, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
		}
	}
}

func genRecord(t *rapid.T, seq uint64) tape.Record {
	i64 := rapid.Int64()
	tokens := rapid.SliceOfN(rapid.Int32(), 1, 5)
	text := rapid.String()
	r := tape.Record{Seq: seq, At: rapid.Int64Min(0).Draw(t, "at"), Core: event.Peer(rapid.Int16().Draw(t, "core"))}
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 0:
		r.Kind, r.Event = tape.KindEvent, &event.Event{
			Kind: event.Arrive, At: i64.Draw(t, "eat"), Req: event.ReqID(rapid.Uint64().Draw(t, "req")),
			Arrival: &event.Arrival{Prompt: tokens.Draw(t, "prompt"), MaxTokens: rapid.Int().Draw(t, "max")},
		}
	case 1:
		r.Kind, r.Event = tape.KindEvent, &event.Event{Kind: event.StepDone, Step: &event.StepResult{
			Batch: rapid.Uint64().Draw(t, "batch"), Err: text.Draw(t, "err"),
			Rows: []event.RowResult{{
				Req: 3, Output: event.Output{Token: rapid.Int32().Draw(t, "tok"), Entropy: rapid.Float32().Draw(t, "h")},
				Dest: event.Peer(rapid.Int16().Draw(t, "dest")), Action: event.Drop, Fault: text.Draw(t, "fault"),
				State: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "state"),
			}},
		}}
	case 2:
		r.Kind, r.Command = tape.KindCommand, &event.Command{Kind: event.RunBatch, Batch: &event.Batch{
			ID: rapid.Uint64().Draw(t, "id"), Rule: event.RuleGuard, Ready: rapid.Int().Draw(t, "ready"),
			Rows: []event.Row{{Req: 1, Start: rapid.Int().Draw(t, "start"), Tokens: tokens.Draw(t, "tokens"), WaitedNs: i64.Draw(t, "w")}},
		}}
	case 3:
		r.Kind, r.Command = tape.KindCommand, &event.Command{
			Kind: event.Finish, Req: 9, Reason: event.ReasonAborted, N: rapid.Int().Draw(t, "n"), Text: text.Draw(t, "text"),
		}
	case 4:
		r.Kind, r.Load = tape.KindLoad, new(tape.Load)
		for _, f := range loadFields(r.Load) {
			*f = rapid.Int().Draw(t, "load")
		}
	case 5:
		r.Kind, r.Host = tape.KindHost, &tape.Request{
			Req: event.ReqID(rapid.Uint64().Draw(t, "req")), Task: validUTF8(text.Draw(t, "task")), Question: validUTF8(text.Draw(t, "q")),
		}
	default:
		r.Kind, r.Host = tape.KindHost, &tape.Knob{
			Knob: validUTF8(text.Draw(t, "knob")), Old: rapid.Float64().Draw(t, "old"), New: rapid.Float64().Draw(t, "new"),
		}
	}
	return r
}

func validUTF8(s string) string { return strings.ToValidUTF8(s, "?") }

// Any records with rising numbers, gaps included, in any frames, come back.
func TestRoundTripOfAnything(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		*e = Encoder{z: e.z}
		b := Header()
		var recs []tape.Record
		var seq, missing uint64
		for i := range rapid.IntRange(0, 30).Draw(t, "records") {
			gap := rapid.SampledFrom([]uint64{0, 0, 0, 1, 1000}).Draw(t, "gap")
			if i > 0 {
				missing += gap
			}
			seq += gap + 1
			r := genRecord(t, seq)
			if err := e.Append(&r); err != nil {
				t.Fatal(err)
			}
			recs = append(recs, r)
			if rapid.IntRange(0, 4).Draw(t, "seal") == 0 {
				b = e.Seal(b)
			}
		}
		b = e.Seal(b)
		s, err := Scan(bytes.NewReader(b), int64(len(b)))
		if err != nil || s.Cut != nil || s.Records != uint64(len(recs)) || s.Missing != missing {
			t.Fatalf("%+v, %v; want %d records, %d missing", s, err, len(recs), missing)
		}
		got, err := read(b, s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(recs, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Case K1: a file cut at any byte yields all records of its complete frames and
// says exactly what was cut.
func TestTruncationAtEveryByte(t *testing.T) {
	recs := realTape(t, 2)
	recs = recs[:min(len(recs), 60)]
	b, frames := file(t, recs, 9)
	ends := append(frames[1:], len(b))
	for n := range len(b) {
		s := scan(t, b[:n])
		whole := 0
		good := HeaderSize
		for _, end := range ends {
			if end <= n {
				whole, good = whole+1, end
			}
		}
		if n < HeaderSize {
			good = 0
		}
		want := min(9*whole, len(recs))
		if s.Frames != whole || s.Records != uint64(want) || s.Good != int64(good) {
			t.Fatalf("cut at %d: %+v, want %d frames", n, s, whole)
		}
		if n == good && n > 0 {
			if s.Cut != nil {
				t.Fatalf("cut at %d, between frames: %v", n, s.Cut)
			}
		} else if c := s.Cut; c == nil || c.Corrupt || c.Offset != int64(good) || c.Bytes != int64(n-good) {
			t.Fatalf("cut at %d: %+v", n, c)
		} else if lost := min(len(recs)-want, 9); n-good >= FrameHeaderSize && c.Lost != uint64(lost) {
			t.Fatalf("cut at %d: %d records lost, want %d", n, c.Lost, lost)
		}
		if n != good && n != good+FrameHeaderSize+1 { // what is read depends on what Scan found
			continue
		}
		got, err := read(b[:n], s, Options{})
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if again, _ := file(t, got, 9); len(got) != want || want > 0 && !bytes.Equal(again, b[:good]) {
			t.Fatalf("cut at %d: %d records, want the first %d", n, len(got), want)
		}
	}
}

// Any flipped bit is found: what is read is a beginning of what was written.
func TestEveryFlippedBitIsFound(t *testing.T) {
	recs := realTape(t, 2)[:40]
	b, frames := file(t, recs, 10)
	whole := fmt.Sprint(keys(recs))
	for at := range b {
		for bit := range 8 {
			c := bytes.Clone(b)
			c[at] ^= 1 << bit
			s, err := Scan(bytes.NewReader(c), int64(len(c)))
			if at < HeaderSize {
				if err == nil {
					t.Fatalf("byte %d bit %d: a damaged header is accepted", at, bit)
				}
				continue
			}
			if err != nil {
				t.Fatalf("byte %d bit %d: %v", at, bit, err)
			}
			if s.Cut == nil || !s.Cut.Corrupt && s.Cut.Offset+s.Cut.Bytes != int64(len(b)) {
				t.Fatalf("byte %d bit %d: not found: %+v", at, bit, s)
			}
			frame := 0
			for frame+1 < len(frames) && frames[frame+1] <= at {
				frame++
			}
			if s.Cut.Offset != int64(frames[frame]) || s.Frames != frame {
				t.Fatalf("byte %d bit %d: cut at %d, the frame begins at %d", at, bit, s.Cut.Offset, frames[frame])
			}
			if bit > 0 || at%8 > 0 { // what is read depends on what Scan found
				continue
			}
			got, err := read(c, s, Options{})
			if err != nil || !strings.HasPrefix(whole, strings.TrimSuffix(fmt.Sprint(keys(got)), "]")) || len(got) != 10*frame {
				t.Fatalf("byte %d: %d records, %v", at, len(got), err)
			}
		}
	}
}

func keys(recs []tape.Record) []string {
	var out []string
	for _, r := range recs {
		out = append(out, fmt.Sprintf("%d/%d/%d/%d", r.Seq, r.At, r.Core, r.Kind))
	}
	return out
}

// A corrupt frame in the middle: its offset and how many records are gone, told
// by the frames behind it, also where its own header is gone.
func TestCorruptFrameInTheMiddle(t *testing.T) {
	recs := realTape(t, 5)
	b, frames := file(t, recs, 50)
	lost := uint64(len(recs) - 100)
	for name, at := range map[string]int{"payload": frames[2] + FrameHeaderSize + 5, "header": frames[2] + 2} {
		c := bytes.Clone(b)
		c[at] ^= 0x40
		s := scan(t, c)
		if s.Cut == nil || !s.Cut.Corrupt || s.Cut.Offset != int64(frames[2]) || s.Cut.Bytes != int64(len(b)-frames[2]) || s.Cut.Lost != lost {
			t.Errorf("%s: %+v, want %d lost from %d on", name, s.Cut, lost, frames[2])
		}
		if s.LastAt != recs[99].At || s.Records != 100 {
			t.Errorf("%s: %d records up to %d", name, s.Records, s.LastAt)
		}
		for _, part := range []string{"offset " + fmt.Sprint(frames[2]), "corrupt", "checksum", fmt.Sprint(lost)} {
			if !strings.Contains(s.Cut.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, s.Cut.Error(), part)
			}
		}
	}
}

// A frame that is there twice, or in the wrong place, is not read as new.
func TestRepeatedFrame(t *testing.T) {
	recs := realTape(t, 2)[:20]
	b, frames := file(t, recs, 10)
	c := append(bytes.Clone(b), b[frames[0]:frames[1]]...)
	s := scan(t, c)
	if s.Cut == nil || !s.Cut.Corrupt || s.Cut.Offset != int64(len(b)) || s.Records != 20 {
		t.Errorf("%+v", s)
	}
}

// Case K2: another version is refused with a sentence that names the one needed.
func TestOtherVersions(t *testing.T) {
	for v, want := range map[uint32]string{
		Version + 1: "the tape has format version 5 and this tokenrouter reads up to 4: use a tokenrouter that reads format 5",
		0:           "the tape has format version 0, which never existed: the file is damaged",
	} {
		b := append(headerOf(v), "what a later version may do"...)
		_, err := Scan(bytes.NewReader(b), int64(len(b)))
		ve, ok := errors.AsType[*VersionError](err)
		if !ok || ve.Have != int(v) || err.Error() != want {
			t.Errorf("version %d: %v", v, err)
		}
	}
	b, _ := file(t, realTape(t, 1)[:5], 5)
	for v := 1; v <= Version; v++ {
		copy(b, headerOf(uint32(v)))
		if s := scan(t, b); s.Version != v || s.Records != 5 || s.Cut != nil {
			t.Errorf("version %d: %+v", v, s)
		}
	}
	for _, b := range [][]byte{[]byte("PAR1"), []byte("TRTAPE\n\n and more than a header"), []byte(strings.Repeat("x", 100))} {
		if _, err := Scan(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), "no tape") {
			t.Errorf("%q: %v", b, err)
		}
	}
}

type strange struct {
	Field int `json:"field"`
}

func (*strange) Name() string { return "strange" }

type richMessage struct {
	Level string `json:"level"`
	Text  string `json:"text"`
	Extra int    `json:"extra"`
}

func (*richMessage) Name() string { return "message" }

// Case K2: what this program does not know is an error that names it, or is
// kept where lenient reading is asked for.
func TestUnknownPayloads(t *testing.T) {
	recs := []tape.Record{
		{Seq: 1, Kind: tape.KindHost, Host: &tape.Message{Level: tape.Info, Text: "one"}},
		{Seq: 2, Kind: tape.KindHost, Host: &strange{7}},
		{Seq: 3, Kind: tape.KindHost, Host: &richMessage{"warn", "three", 9}},
	}
	b, _ := file(t, recs[:2], 9)
	got, err := read(b, scan(t, b), Options{})
	if len(got) != 1 || err == nil || !strings.Contains(err.Error(), `record 2: the payload "strange" is not known`) {
		t.Errorf("strict: %d records, %v", len(got), err)
	}
	b, _ = file(t, recs[2:], 9)
	if _, err := read(b, scan(t, b), Options{}); err == nil || !strings.Contains(err.Error(), "extra") {
		t.Errorf("strict: %v", err)
	}
	b, _ = file(t, recs, 9)
	kept := readAll(t, b, Options{Lenient: true})
	want := []tape.Host{
		&tape.Message{Level: tape.Info, Text: "one"},
		&Unknown{Label: "strange", JSON: []byte(`{"field":7}`)},
		&tape.Message{Level: tape.Warn, Text: "three"},
	}
	for i := range want {
		if diff := cmp.Diff(want[i], kept[i].Host); diff != "" {
			t.Error(diff)
		}
	}
	again, _ := file(t, kept[1:2], 9)
	if diff := cmp.Diff(kept[1:2], readAll(t, again, Options{Lenient: true})); diff != "" {
		t.Error(diff)
	}
}

// frameOf is a frame with right checksums around any raw bytes.
func frameOf(raw []byte, records uint32, firstSeq uint64) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	p := z.EncodeAll(raw, nil)
	h := frameHeader{payload: uint32(len(p)), raw: uint32(len(raw)), records: records, crc: crc32.Checksum(p, castagnoli), firstSeq: firstSeq, lastSeq: firstSeq + uint64(max(records, 1)) - 1}
	return append(h.append(nil), p...)
}

// Frames that are sound outside and wrong inside are errors with an offset.
func TestSoundFrameWithWrongContent(t *testing.T) {
	record := func(body ...byte) []byte { return append([]byte{byte(len(body))}, body...) }
	load := append([]byte{0, 0, 0, byte(tape.KindLoad)}, make([]byte, 8)...)
	for name, c := range map[string]struct {
		raw     []byte
		records uint32
		want    string
	}{
		"more records claimed":  {append(record(load...), record(load...)...), 3, "ends too early"},
		"fewer records claimed": {append(record(load...), record(load...)...), 1, "behind its last record"},
		"unknown kind":          {record(0, 0, 0, 99, 1), 1, "kind 99"},
		"huge gap":              {record(append(binary.AppendUvarint(nil, 1<<63), 0, 0, 3)...), 1, "bad record number"},
		"time before the start": {record(append([]byte{0, 1}, 0, 3)...), 1, "its time lies outside the session"},
		"bad core":              {record(append(append([]byte{0, 0}, binary.AppendVarint(nil, 1<<20)...), 3)...), 1, "bad core"},
		"event cut":             {record(0, 0, 0, byte(tape.KindEvent), byte(event.Arrive)), 1, "record 5"},
		"trailing bytes":        {record(append(load, 1)...), 1, "behind its end"},
		"bad json":              {record(append([]byte{0, 0, 0, byte(tape.KindHost), 6}, `closed{"reason":`...)...), 1, `"closed"`},
		"json and more":         {record(append([]byte{0, 0, 0, byte(tape.KindHost), 6}, `closed{"reason":""} {}`...)...), 1, "behind its end"},
		"name cut":              {record(0, 0, 0, byte(tape.KindHost), 200), 1, "ends too early"},
	} {
		b := append(Header(), frameOf(c.raw, c.records, 5)...)
		s := scan(t, b)
		if s.Cut != nil {
			t.Errorf("%s: %v", name, s.Cut)
		}
		_, err := read(b, s, Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "offset 16") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A small file cannot make a reader take much memory: neither by claims in its
// headers nor by bytes that decompress to gigabytes.
func TestLimitsBeforeAllocation(t *testing.T) {
	h := frameHeader{payload: maxPayload, raw: MaxRaw, records: 9, firstSeq: 1, lastSeq: 9}
	claims := h.append(Header())
	bomb := frameOf(make([]byte, 96<<20), 1, 1)
	small := frameHeader{}
	copy(bomb, func() []byte {
		small = frameHeader{
			payload: uint32(len(bomb) - FrameHeaderSize), raw: 100, records: 1, firstSeq: 1, lastSeq: 1,
			crc: crc32.Checksum(bomb[FrameHeaderSize:], castagnoli),
		}
		return small.append(nil)
	}())
	for name, b := range map[string][]byte{"claims": claims, "bomb": append(Header(), bomb...)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := scan(t, b)
		got, err := read(b, s, Options{})
		runtime.ReadMemStats(&after)
		if len(got) > 0 || err == nil && s.Cut == nil {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d MiB were allocated for %d bytes", name, n>>20, len(b))
		}
	}
	for name, h := range map[string]frameHeader{
		"payload": {payload: maxPayload + 1, raw: 9, records: 1, firstSeq: 1, lastSeq: 1},
		"raw":     {payload: 9, raw: MaxRaw + 1, records: 1, firstSeq: 1, lastSeq: 1},
		"records": {payload: 9, raw: 9, records: 2, firstSeq: 1, lastSeq: 2},
		"none":    {payload: 9, raw: 9, records: 0, firstSeq: 1, lastSeq: 1},
		"number":  {payload: 9, raw: 9, records: 1, firstSeq: 1 << 63, lastSeq: 1 << 63},
		"zero":    {payload: 9, raw: 9, records: 1, firstSeq: 0, lastSeq: 1},
		"order":   {payload: 9, raw: 9, records: 1, firstSeq: 5, lastSeq: 4},
		"span":    {payload: 9, raw: 50, records: 3, firstSeq: 5, lastSeq: 6},
	} {
		s := scan(t, append(h.append(Header()), make([]byte, 50)...))
		if s.Cut == nil || !s.Cut.Corrupt || !strings.Contains(s.Cut.Why, "claims") {
			t.Errorf("%s: %+v", name, s.Cut)
		}
	}
}

// A record that cannot be stored is refused alone; the frame goes on.
func TestRefusedRecords(t *testing.T) {
	e, err := NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	add := func(r tape.Record) error { return e.Append(&r) }
	msg := func(seq uint64, text string) tape.Record {
		return tape.Record{Seq: seq, Kind: tape.KindHost, Host: &tape.Message{Text: text}}
	}
	for _, c := range []struct {
		rec  tape.Record
		want string
	}{
		{msg(2, "fine"), ""},
		{msg(2, "again"), "record 2 comes after record 2"},
		{msg(3, strings.Repeat("x", MaxRecord)), "more than a frame may have"},
		{tape.Record{Seq: 4, Kind: tape.KindHost, Host: &tape.Knob{New: inf()}}, "knob"},
		{tape.Record{Seq: 5, Kind: tape.KindEvent}, "without its payload"},
		{tape.Record{Seq: 6, Kind: 77}, "kind 77"},
		{tape.Record{Seq: 6, At: -1, Kind: tape.KindHost, Host: &tape.Message{}}, "its time lies before the session began"},
		{msg(7, "fine too"), ""},
	} {
		err := add(c.rec)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("record %d: %v, want %q", c.rec.Seq, err, c.want)
		}
	}
	b := e.Seal(Header())
	got := readAll(t, b, Options{})
	if len(got) != 2 || got[0].Seq != 2 || got[1].Seq != 7 {
		t.Errorf("%v", keys(got))
	}
	if c := e.Seal(b); len(c) != len(b) {
		t.Error("sealing nothing writes something")
	}
}

func inf() float64 { return 1 / zero }

var zero float64

// FuzzScan: no bytes make the readers panic, and what is read can be written
// and read again.
func FuzzScan(f *testing.F) {
	recs := realTape(f, 1)
	b, _ := file(f, recs[:20], 6)
	f.Add(b)
	f.Add(b[:len(b)-5])
	f.Add(b[:HeaderSize])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Scan(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		if s.Good > int64(len(b)) || s.Cut != nil && s.Cut.Offset+s.Cut.Bytes != int64(len(b)) {
			t.Fatalf("%+v of %d bytes", s, len(b))
		}
		again(t, b, s)
	})
}

// FuzzFrame: the same for the inside of a frame, behind its checksums.
func FuzzFrame(f *testing.F) {
	var e Encoder
	recs := realTape(f, 1)
	for i := range recs[:30] {
		if err := e.Append(&recs[i]); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(e.raw, e.n)
	f.Add([]byte{5, 0, 0, 0, 99, 1}, uint32(1))
	f.Fuzz(func(t *testing.T, raw []byte, records uint32) {
		got := inside(raw, records, 1, uint64(records))
		var e Encoder
		for i := range got {
			if err := e.Append(&got[i]); err != nil {
				t.Fatalf("record %d was read and cannot be written: %v", got[i].Seq, err)
			}
		}
		if n := len(inside(e.raw, e.n, max(e.first, 1), e.lastSeq)); n != len(got) {
			t.Fatalf("%d records after %d", n, len(got))
		}
	})
}

// inside reads the records of a decompressed frame up to the first error.
func inside(raw []byte, records uint32, first, last uint64) (got []tape.Record) {
	d := decoder{src: raw, seq: first - 1, last: last, left: records, opts: Options{Lenient: true}}
	for d.more() {
		r, skip, err := d.next()
		if err != nil {
			break
		}
		if !skip {
			got = append(got, r)
		}
	}
	return got
}

func again(t *testing.T, b []byte, s Summary) {
	got, err := read(b, s, Options{Lenient: true})
	if err != nil {
		got = nil
	}
	c, _ := file(t, got, 1<<20)
	if n := len(readAll(t, c, Options{Lenient: true})); n != len(got) {
		t.Fatalf("%d records after %d", n, len(got))
	}
}
