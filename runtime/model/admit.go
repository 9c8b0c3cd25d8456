package model

import (
	"errors"
	"fmt"
)

// RowError says that a step was refused because of one of its rows.
type RowError struct {
	Row  int
	Text string // what the row does wrong and the cure, to be read behind its name
}

func (e *RowError) Error() string { return fmt.Sprintf("model: row %d %s", e.Row, e.Text) }

// admit checks every row before anything changes, then lays out the step.
func (m *Model) admit(ws *Workspace, p *Pool, rows []Row) error {
	s, err := m.check(p, rows)
	if err != nil {
		return err
	}
	if err := p.reserve(s.missing); err != nil {
		return fmt.Errorf("model: %s: %d more KV blocks of %d bytes: %w", m.Name, s.missing, p.BlockBytes(), err)
	}
	ws.tokens, ws.runs, ws.pages = sized(ws.tokens, s.tokens)[:0], ws.runs[:0], ws.pages[:0]
	longest := 0
	ws.work = 0
	for i := range rows {
		r := &rows[i]
		end := r.Start + len(r.Tokens)
		longest = max(longest, end)
		for k := r.Start / BlockLen; k*BlockLen < end; k++ {
			p.take(r.Blocks[k], min(end-k*BlockLen, BlockLen))
		}
		first := len(ws.pages)
		for _, id := range r.Blocks[:blocksFor(end)] {
			ws.pages = append(ws.pages, p.blocks[id].data)
		}
		for k, id := range r.Tokens {
			at := len(ws.tokens)
			pos := r.Start + k
			if k == 0 || pos%BlockLen == 0 {
				ws.runs = append(ws.runs, span{at, 0})
			}
			ws.runs[len(ws.runs)-1].n++
			ws.tokens = append(ws.tokens, token{id: id, pos: pos, col: at, first: first})
			ws.work += pos + 1
		}
	}
	ws.work *= 2 * m.Config.Heads / m.Config.KVHeads * m.Config.HeadDim
	ws.single, ws.again, ws.wanted = s.single && !s.again, s.again, s.wanted
	ws.resultAt = sized(ws.resultAt, len(rows))
	ws.columnAt = sized(ws.columnAt, s.wanted)
	m.rope.reach(longest)
	ws.layout(m, p, s.heads)
	return nil
}

// blocksFor is the number of blocks that n positions take.
func blocksFor(n int) int { return (n + BlockLen - 1) / BlockLen }

// size is what a step holds.
type size struct {
	tokens  int
	wanted  int  // rows with a result
	heads   int  // rows with logits or signals
	missing int  // blocks that need memory
	single  bool // every row has one token
	again   bool // a row feeds the last position of a full block again
}

// check holds a step against the rules and counts what is in it.
func (m *Model) check(p *Pool, rows []Row) (s size, err error) {
	switch {
	case p == nil || p.m != m:
		return s, fmt.Errorf("model: the KV pool of the step is not one of %s: make it with NewPool of the same model", m.Name)
	case len(rows) == 0:
		return s, errors.New("model: a step needs at least one row")
	}
	p.step++
	s.single = true
	for i := range rows {
		r := &rows[i]
		text := m.checkTokens(r)
		if text == "" {
			text = p.checkTable(r)
		}
		if text == "" {
			text = p.markWrites(r, i, &s)
		}
		if text != "" {
			return s, &RowError{i, text}
		}
		s.tokens += len(r.Tokens)
		s.single = s.single && len(r.Tokens) == 1
		if r.results() {
			s.wanted++
		}
		if r.Logits || r.Signals {
			s.heads++
		}
	}
	for i := range rows {
		if text := p.checkReads(&rows[i]); text != "" {
			return s, &RowError{i, text}
		}
	}
	return s, nil
}

// checkTokens says what is wrong with a row's tokens and their positions.
func (m *Model) checkTokens(r *Row) string {
	switch end := r.Start + len(r.Tokens); {
	case len(r.Tokens) == 0:
		return "has no tokens: leave it out of the step"
	case r.Start < 0:
		return fmt.Sprintf("starts at position %d: positions count from 0", r.Start)
	case r.Start >= m.Config.MaxPos || end > m.Config.MaxPos:
		return fmt.Sprintf("reaches position %d, but %s has max_position_embeddings %d: end the request there", end-1, m.Name, m.Config.MaxPos)
	}
	for _, id := range r.Tokens {
		if id < 0 || int(id) >= m.Config.Vocab {
			return fmt.Sprintf("has token %d, but %s knows 0..%d: check that the tokenizers are equal", id, m.Name, m.Config.Vocab-1)
		}
	}
	return ""
}

// checkTable says what is wrong with a row's blocks: each must exist, there
// must be enough of them, and those before Start must be filled.
func (p *Pool) checkTable(r *Row) string {
	end := r.Start + len(r.Tokens)
	if room := len(r.Blocks) * BlockLen; room < end {
		return fmt.Sprintf("reaches position %d, but its %d KV blocks end at %d: give it one for each %d positions", end-1, len(r.Blocks), room, BlockLen)
	}
	for k, id := range r.Blocks {
		if id < 0 || int(id) >= p.limit {
			return fmt.Sprintf("has KV block %d, but the pool has 0..%d: give runner and core pools of one size", id, p.limit-1)
		}
		need := min(r.Start-k*BlockLen, BlockLen)
		if need > 0 && p.held(id) < need {
			return fmt.Sprintf("starts at position %d, but KV block %d holds %d of the %d positions it needs there: feed what is missing first", r.Start, id, p.held(id), need)
		}
	}
	return ""
}

// markWrites marks the blocks that row i changes; each belongs to one row of
// the step. A row that only feeds the last position of a full block again, for
// its logits, stores what is there already: such a block may be shared.
func (p *Pool) markWrites(r *Row, i int, s *size) string {
	end := r.Start + len(r.Tokens)
	for k := r.Start / BlockLen; k*BlockLen < end; k++ {
		id := r.Blocks[k]
		if r.Start-k*BlockLen == BlockLen-1 && p.held(id) == BlockLen {
			s.again = true
			continue
		}
		p.reach(id)
		b := &p.blocks[id]
		if b.step == p.step {
			return fmt.Sprintf("writes KV block %d, and so does row %d: a block that is written belongs to one row", id, b.row)
		}
		b.step, b.row = p.step, i
		if b.data == nil {
			s.missing++
		}
	}
	return ""
}

// checkReads holds the blocks before a row's Start against what the step
// writes.
func (p *Pool) checkReads(r *Row) string {
	for _, id := range r.Blocks[:r.Start/BlockLen] {
		if b := &p.blocks[id]; b.step == p.step {
			return fmt.Sprintf("reads KV block %d, which row %d writes in the same step: a block that is written belongs to one row", id, b.row)
		}
	}
	return ""
}
