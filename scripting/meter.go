package scripting

import (
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Limits of one call into a router. Instructions are counted, never timed, and
// every built-in charges what it does, so the same call stops at the same point
// on every machine.
const (
	MaxInstructions = 100_000  // VM instructions of one call of route, send or receive, or of a file's top level
	MaxString       = 16 << 10 // bytes of one string
	MaxArray        = 16 << 10 // values in the array part of one table
	MaxCallMemory   = 8 << 20  // bytes that strings, arrays and results may take in one call
	MaxHeld         = 16 << 20 // bytes that a router's variables may hold between calls

	maxValues = 256 // values that unpack and string.byte give at once
)

// Costs in instructions. A failing pcall builds a traceback; a built-in pays by
// the piece for what it moves and what it looks at.
const (
	costFailure = 1000 // a traceback
	costFormat  = 16   // a number in decimal, at any precision
	costPiece   = 128  // bytes moved per instruction
	costLook    = 8    // values or bytes looked at one by one per instruction
)

// meter is the context of a VM. gopher-lua asks Done before every instruction;
// it answers with a closed channel once the budget is spent, which raises Err
// at the current line, again at every further instruction, so pcall cannot
// swallow it.
type meter struct {
	left   int64 // instructions
	memory int64 // bytes
	used   int64 // instructions of finished calls since the last audit
	limit  int64 // what left began with
	why    error
	hook   func() // called before every instruction when tracing
	print  func(line string)
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (m *meter) begin(limit int64) {
	m.left, m.limit, m.memory, m.why = limit, limit, MaxCallMemory, nil
}

// end adds the finished call to the account of the next audit.
func (m *meter) end() {
	m.used += m.limit - max(m.left, 0) + (MaxCallMemory-max(m.memory, 0))/bytesPerInstruction
}

// Done implements context.Context.
func (m *meter) Done() <-chan struct{} {
	m.left--
	if m.left < 0 || m.hook != nil {
		return m.slow()
	}
	return nil
}

func (m *meter) slow() <-chan struct{} {
	if m.left < 0 {
		if m.why == nil {
			m.why = fmt.Errorf("more than %d VM instructions in one call; is there an endless loop?", m.limit)
		}
		return closed
	}
	m.hook()
	return nil
}

// Err implements context.Context.
func (m *meter) Err() error {
	if m.why == nil {
		return errors.New("the call was stopped")
	}
	return m.why
}

// Deadline implements context.Context: there is none.
func (m *meter) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context.
func (m *meter) Value(any) any { return nil }

var _ context.Context = (*meter)(nil)

// charge takes n instructions from the budget of the running call.
func (m *meter) charge(l *lua.LState, n int) {
	m.left -= int64(n)
	if m.left < 0 {
		m.slow()
		l.RaiseError("%s", m.why.Error())
	}
}

// alloc takes n bytes, and the work of filling them, from the budget. Once the
// memory is spent the call is over, whatever it catches.
func (m *meter) alloc(l *lua.LState, n int) {
	m.memory -= int64(n)
	if m.memory < 0 {
		if m.why == nil {
			m.why = fmt.Errorf("more than %d MiB of memory taken in one call", MaxCallMemory>>20)
		}
		m.left = -1
	}
	m.charge(l, n/costPiece)
}

// text checks that a string of n bytes may be made, and pays for it.
func (m *meter) text(l *lua.LState, n int) {
	if n > MaxString {
		l.RaiseError("a string of %d bytes; a router's strings end at %d", n, MaxString)
	}
	m.alloc(l, n)
}
