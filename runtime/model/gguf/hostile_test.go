package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"tokenrouter/runtime/model/tensor"
)

// hostile is a file that is refused.
type hostile struct {
	name string
	file raw
	want string
	at   int // the error's offset, -1 for any
}

// hostileFiles are what a damaged or malicious file may claim (case H2).
func hostileFiles() []hostile {
	const table = 4 + 4 + 8 + 8 // where the metadata begin
	one := head(1, 0)
	end := func(r raw) int { return len(r) }
	keyed := func(n uint64) raw { return head(0, n) }
	aligned := func(v uint64, k kind) raw {
		r := head(1, 1).key("general.alignment", k)
		if k == kindUint64 {
			r = r.u64(v)
		} else {
			r = r.u32(uint32(v))
		}
		return r.entry("a", 0, 0, 1).data(32, 4)
	}
	return []hostile{
		{"empty", nil, "ends inside the magic number", 0},
		{"magic only", raw("GGUF"), "ends inside the version", 4},
		{"another file", raw("PK\x03\x04............"), "it is no GGUF file", 0},
		{"version 0", raw("GGUF").u32(0).u64(0).u64(0), "version 0", 4},
		{"version 1", raw("GGUF").u32(1).u32(0).u32(0), "version 1 of GGUF is not supported", 4},
		{"version 4", raw("GGUF").u32(4).u64(0).u64(0), "version 4", 4},
		{"big-endian", raw("GGUF").u32(3 << 24).u64(0).u64(0), "big-endian", 4},
		{"2^60 tensors", head(1<<60, 0), "the number of tensors: the file claims 1152921504606846976", 8},
		{"2^64-1 tensors", head(math.MaxUint64, 0), "more than the limit", 8},
		{"2^60 keys", head(0, 1<<60), "the number of metadata keys: the file claims 1152921504606846976", 16},
		{"tensors missing", head(MaxTensors, 0), "ends inside a tensor's name", table},
		{"keys missing", head(0, MaxKeys), "ends inside a metadata key", table},

		{"key of 2^62 bytes", keyed(1).u64(1 << 62), "claims 4611686018427387904 bytes", table},
		{"key beyond the file", keyed(1).u64(1000), "but only 0 follow", table},
		{"long key", keyed(1).str(strings.Repeat("k", MaxKeyBytes+1)).u32(0), "more than the limit", table},
		{"same key", keyed(2).key("a", kindBool).cat(1).key("a", kindBool).cat(1), `key "a" appears twice`, table + 14},
		{"unknown kind", keyed(1).str("a").u32(13), "is of kind 13", table + 9},
		{"bool of 2", keyed(1).key("a", kindBool).cat(2), "bool of 2", table + 13},
		{"bool of 2 in an array", keyed(1).key("a", kindArray).array(kindBool, 3).cat(1, 0, 9), "bool of 9", table + 27},
		{"string of 2^62 bytes", keyed(1).key("a", kindString).u64(1 << 62), "claims 4611686018427387904 bytes", table + 13},
		{"string of 2^64-1 bytes", keyed(1).key("a", kindString).u64(math.MaxUint64), "the value of \"a\" claims", table + 13},
		{"string beyond the file", keyed(1).key("a", kindString).u64(5).cat(1, 2, 3, 4), "claims 5 bytes, but only 4 follow", table + 13},
		{"array of 2^60", keyed(1).key("a", kindArray).array(kindUint8, 1<<60), "more than the limit", table + 17},
		{"array of 2^60 strings", keyed(1).key("a", kindArray).array(kindString, 1<<60), "more than the limit", table + 17},
		{"array beyond the file", keyed(1).key("a", kindArray).array(kindFloat64, MaxArray), "but only 0 bytes follow", table + 25},
		{"strings beyond the file", keyed(1).key("a", kindArray).array(kindString, MaxArray).str("x"), "the file ends inside", -1},
		{"string in an array of 2^62 bytes", keyed(1).key("a", kindArray).array(kindString, 2).str("x").u64(1 << 62), "claims 4611686018427387904 bytes", table + 34},
		{"array of arrays", keyed(1).key("a", kindArray).array(kindArray, 1).array(kindUint8, 0), "array of arrays", table + 13},
		{"unknown elements", keyed(1).key("a", kindArray).array(99, 1), "is of kind 99", table + 13},
		{"value of a key without a name", keyed(1).key("", kindUint64), `the value of "" claims`, table + 12},
		{"value missing", keyed(1).key("a", kindUint64).u32(1), "claims 1 elements of 8 bytes, but only 4", table + 13},

		{"alignment 0", aligned(0, kindUint32), "general.alignment is 0", table},
		{"alignment 24", aligned(24, kindUint32), "general.alignment is 24", table},
		{"alignment 2^63", aligned(1<<63, kindUint64), "a power of two from 1 to", table},
		{"alignment of floats", aligned(32, kindFloat32), `"general.alignment" is a float32, an unsigned number is needed`, table},

		{"part of a split model", keyed(1).key("split.count", kindUint16).cat(3, 0), "one of 3 parts", table},

		{"name of 2^62 bytes", one.cat().u64(1 << 62), "a tensor's name claims", table},
		{"long name", one.cat().entry(strings.Repeat("n", MaxNameBytes+1), 0, 0, 1), "more than the limit of 255", table},
		{"nine dimensions", one.cat().entry("a", 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1), "9 dimensions", table + 9},
		{"five dimensions", one.cat().entry("a", 0, 0, 1, 1, 1, 1, 1), "5 dimensions", table + 9},
		{"2^32-1 dimensions", one.cat().str("a").u32(math.MaxUint32), "4294967295 dimensions", table + 9},
		{"dimension 0", one.cat().entry("a", 0, 0, 4, 0), "dimension 0 is out of range", table + 21},
		{"dimension 2^63", one.cat().entry("a", 0, 0, 1<<63), "out of range", table + 13},
		{"product overflows", one.cat().entry("a", 0, 0, math.MaxInt32, math.MaxInt32, math.MaxInt32), "the product of the dimensions overflows", table + 21},
		{"product wraps to 0", one.cat().entry("a", 0, 0, 1<<30, 1<<30, 1<<4), "overflows", table + 21},
		{"product wraps to 4", one.cat().entry("a", 0, 0, 1<<30, 1<<30, 1<<2, 1), "overflows", table + 21},
		{"bytes wrap", one.cat().entry("a", 28, 0, 1<<30, 1<<30, 2), "overflows", table + 21},
		{"unknown type", one.cat().entry("a", 77, 0, 1), "of type 77", table + 21},
		{"removed type", one.cat().entry("a", 31, 0, 32), "of type 31", table + 21},
		{"type of another format", one.cat().entry("a", uint32(tensor.U8), 0, 32), "of type 1001", table + 21},
		{"half a block", one.cat().entry("a", 8, 0, 33, 32), "blocks of Q8_0", table + 29},
		{"same tensor", head(2, 0).entry("a", 0, 0, 1).entry("a", 0, 32, 1).data(32, 64), `tensor "a" appears twice`, table + 33},

		{"offset past the end", one.cat().entry("a", 0, 1<<20, 1).data(32, 4), "the file ends here", 68},
		{"offset 2^64-32", one.cat().entry("a", 0, math.MaxUint64-31, 1).data(32, 4), "the file ends here", 68},
		{"unaligned", one.cat().entry("a", 0, 4, 1).data(32, 64), "no multiple of the alignment", table},
		{"huge tensor", one.cat().entry("a", 0, 0, math.MaxInt32, 1<<20).data(32, 64), "the file ends here, but tensor \"a\" needs 9007199250546688 bytes", 160},
		{"no data", one.cat().entry("a", 0, 0, 1), "the file ends here", end(one.cat().entry("a", 0, 0, 1))},
		{"overlap", head(2, 0).entry("a", 0, 0, 64).entry("b", 0, 32, 1).data(32, 256), `tensor "b" overlaps tensor "a"`, table + 33},
		{"same place", head(2, 0).entry("a", 0, 32, 1).entry("b", 0, 32, 1).data(32, 256), `tensor "b" overlaps tensor "a"`, table + 33},
		{"overlap in another order", head(2, 0).entry("b", 0, 32, 1).entry("a", 0, 0, 64).data(32, 256), `tensor "b" overlaps tensor "a"`, table},
	}
}

// cat appends bytes to a copy.
func (r raw) cat(b ...byte) raw { return slices.Concat(r, raw(b)) }

func TestHostile(t *testing.T) {
	for _, c := range hostileFiles() {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.file)
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want an Error with %q", err, c.want)
			}
			if e.Offset < 0 || e.Offset > int64(len(c.file)) || c.at >= 0 && e.Offset != int64(c.at) {
				t.Errorf("%v: the file has %d bytes, the damage is at %d", err, len(c.file), c.at)
			}
		})
	}
}

// allocated is the memory that f asks for in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Case H2: what a file claims costs no memory. The largest that may be claimed
// and is there, 65,536 tensors with names of 255 bytes, stays below the limit,
// too.
func TestHostileAllocatesLittle(t *testing.T) {
	for _, c := range hostileFiles() {
		if n := allocated(func() { _, _ = Parse(c.file) }); n > 64<<10 {
			t.Errorf("%s: %d bytes were allocated for a file of %d", c.name, n, len(c.file))
		}
	}
	names := head(MaxTensors, 0)
	for i := range MaxTensors {
		names = names.entry(fmt.Sprintf("%0255d", i), 0, 0, 1)
	}
	names = names.data(32, 4)
	if n := allocated(func() {
		if _, err := Parse(names); err == nil || !strings.Contains(err.Error(), "overlaps") {
			t.Error(err)
		}
	}); n > 64<<20 {
		t.Errorf("%d bytes were allocated for %d tensors", n, MaxTensors)
	}
	keys := head(0, MaxKeys)
	for i := range MaxKeys {
		keys = append(keys.key(fmt.Sprintf("%0250d", i), kindBool), 1)
	}
	if n := allocated(func() {
		if _, err := Parse(keys); err != nil {
			t.Error(err)
		}
	}); n > 64<<20 {
		t.Errorf("%d bytes were allocated for %d keys", n, MaxKeys)
	}
	long := head(0, 1000)
	for i := range 1000 {
		long = append(long.key(fmt.Sprintf("%065000d", i), kindBool), 1)
	}
	if n := allocated(func() {
		if _, err := Parse(long); err == nil || !strings.Contains(err.Error(), "the metadata keys have more than the limit") {
			t.Error(err)
		}
	}); n > 64<<20 {
		t.Errorf("%d bytes were allocated for long keys", n)
	}
}

// Case H1: a file cut at any byte gives an error with the place. What follows
// the last tensor is padding and may be missing.
func TestTruncated(t *testing.T) {
	for _, alignment := range []uint32{1, 32} {
		b := sample(t, alignment)
		whole, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		last, _ := whole.Tensor("last")
		end := bytes.LastIndex(b, last.Data) + len(last.Data)
		for n := range end {
			_, err := Parse(b[:n])
			var e *Error
			if !errors.As(err, &e) || e.Offset > int64(n) || e.Reason == "" {
				t.Fatalf("cut at %d of %d: %v", n, len(b), err)
			}
		}
		for n := end; n <= len(b); n++ {
			if _, err := Parse(b[:n]); err != nil {
				t.Fatalf("cut at %d in the padding at the end: %v", n, err)
			}
		}
	}
}
