package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"tokenrouter/runtime/model/tensor"
)

// Entry is a key of the metadata with its value: a bool, a string, a number of
// a fixed size, or a slice of strings or of such numbers.
type Entry struct {
	Key   string
	Value any
}

// Write writes a GGUF file of version 3. The alignment is that of the entry
// general.alignment, a uint32, or the default. Tensors are written one after the
// other, so memory is needed only for what their sources hold.
func Write(w io.Writer, meta []Entry, tensors []tensor.Source) error {
	if err := write(w, meta, tensors); err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	return nil
}

func write(w io.Writer, meta []Entry, tensors []tensor.Source) error {
	alignment, err := check(meta, tensors)
	if err != nil {
		return err
	}
	b := append([]byte("GGUF"), 3, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(meta)))
	for _, e := range meta {
		if b, err = appendValue(appendString(b, e.Key), e.Value); err != nil {
			return fmt.Errorf("metadata key %q: %w", e.Key, err)
		}
	}
	var offset int64
	for _, t := range tensors {
		b = appendString(b, t.Name)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t.Shape)))
		for i := range t.Shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(t.Shape[len(t.Shape)-1-i]))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(offset))
		offset += t.Size() + padding(t.Size(), alignment)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	b = append(b, make([]byte, padding(int64(len(b)), alignment))...)
	if _, err := out.Write(b); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := t.CopyTo(out); err != nil {
			return err
		}
		if _, err := out.Write(make([]byte, padding(t.Size(), alignment))); err != nil {
			return err
		}
	}
	return out.Flush()
}

// padding is what is missing to the next multiple.
func padding(n int64, alignment int) int64 { return -n & int64(alignment-1) }

// check refuses what Parse would refuse, and gives the alignment.
func check(meta []Entry, tensors []tensor.Source) (alignment int, err error) {
	if len(meta) > MaxKeys || len(tensors) > MaxTensors {
		return 0, errors.New("too many metadata keys or tensors")
	}
	alignment = DefaultAlignment
	seen := map[string]bool{}
	for _, e := range meta {
		if seen[e.Key] {
			return 0, fmt.Errorf("metadata key %q appears twice", e.Key)
		}
		seen[e.Key] = true
		if e.Key != "general.alignment" {
			continue
		}
		n, ok := e.Value.(uint32)
		if !ok || n == 0 || n > MaxAlignment || n&(n-1) != 0 {
			return 0, fmt.Errorf("general.alignment is %v (%T), a uint32 that is a power of two from 1 to %d is needed", e.Value, e.Value, MaxAlignment)
		}
		alignment = int(n)
	}
	clear(seen)
	for _, t := range tensors {
		switch {
		case seen[t.Name]:
			return 0, fmt.Errorf("tensor %q appears twice", t.Name)
		case len(t.Name) > MaxNameBytes, len(t.Shape) > MaxDims, len(t.Shape) == 0:
			return 0, fmt.Errorf("tensor %q: a name of at most %d bytes and 1 to %d dimensions are needed", t.Name, MaxNameBytes, MaxDims)
		case t.Type >= 1000 || !t.Type.Named():
			return 0, fmt.Errorf("tensor %q: %s cannot stand in a GGUF file", t.Name, t.Type)
		case t.Shape[len(t.Shape)-1]%t.Type.Block() != 0:
			return 0, fmt.Errorf("tensor %q: a row of %d values is no whole number of blocks of %s", t.Name, t.Shape[len(t.Shape)-1], t.Type)
		}
		for _, d := range t.Shape {
			if d < 1 || d > math.MaxInt32 {
				return 0, fmt.Errorf("tensor %q: dimension %d is out of range", t.Name, d)
			}
		}
		seen[t.Name] = true
	}
	return alignment, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends a value's kind and the value.
func appendValue(b []byte, v any) ([]byte, error) {
	if k, ok := kindOf(v); ok {
		return appendScalar(binary.LittleEndian.AppendUint32(b, uint32(k)), v), nil
	}
	switch v := v.(type) {
	case []string:
		return appendArray(b, kindString, v), nil
	case []bool:
		return appendArray(b, kindBool, v), nil
	case []uint8:
		return appendArray(b, kindUint8, v), nil
	case []int8:
		return appendArray(b, kindInt8, v), nil
	case []uint16:
		return appendArray(b, kindUint16, v), nil
	case []int16:
		return appendArray(b, kindInt16, v), nil
	case []uint32:
		return appendArray(b, kindUint32, v), nil
	case []int32:
		return appendArray(b, kindInt32, v), nil
	case []uint64:
		return appendArray(b, kindUint64, v), nil
	case []int64:
		return appendArray(b, kindInt64, v), nil
	case []float32:
		return appendArray(b, kindFloat32, v), nil
	case []float64:
		return appendArray(b, kindFloat64, v), nil
	}
	return nil, fmt.Errorf("a value of type %T has no form in a GGUF file", v)
}

func appendArray[T any](b []byte, k kind, all []T) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(kindArray))
	b = binary.LittleEndian.AppendUint32(b, uint32(k))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(all)))
	for _, v := range all {
		b = appendScalar(b, v)
	}
	return b
}

// kindOf is the kind of a single value.
func kindOf(v any) (kind, bool) {
	switch v.(type) {
	case uint8:
		return kindUint8, true
	case int8:
		return kindInt8, true
	case uint16:
		return kindUint16, true
	case int16:
		return kindInt16, true
	case uint32:
		return kindUint32, true
	case int32:
		return kindInt32, true
	case float32:
		return kindFloat32, true
	case bool:
		return kindBool, true
	case string:
		return kindString, true
	case uint64:
		return kindUint64, true
	case int64:
		return kindInt64, true
	case float64:
		return kindFloat64, true
	}
	return 0, false
}

func appendScalar(b []byte, v any) []byte {
	switch v := v.(type) {
	case uint8:
		return append(b, v)
	case int8:
		return append(b, byte(v))
	case uint16:
		return binary.LittleEndian.AppendUint16(b, v)
	case int16:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case uint32:
		return binary.LittleEndian.AppendUint32(b, v)
	case int32:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	case float32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	case uint64:
		return binary.LittleEndian.AppendUint64(b, v)
	case int64:
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	case float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	case bool:
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	}
	return appendString(b, v.(string))
}
