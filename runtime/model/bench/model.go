package bench

import (
	"tokenrouter/kernels/team"
	"tokenrouter/runtime/model"
	"tokenrouter/runtime/model/checkpoint"
)

// Model is a loaded model with what its steps have to do.
type Model struct {
	*model.Model
	work work
}

// Load loads an open checkpoint, which stays open.
func Load(c *checkpoint.Checkpoint, o model.Options) (*Model, error) {
	p, err := c.Plan(o.Format)
	if err != nil {
		return nil, err
	}
	m, err := model.FromCheckpoint(c, o)
	if err != nil {
		return nil, err
	}
	return &Model{m, newWork(p, m)}, nil
}

// Weights are the bytes of the matrices that a step of one token reads.
func (m *Model) Weights() int64 { return m.work.weights() }

// sequences is a model with a KV pool and some sequences in it.
type sequences struct {
	m    *Model
	ws   model.Workspace
	pool *model.Pool
	rows []model.Row
	room int // positions of a sequence

	failed error // of a step that was timed
}

// open takes a seat and memory for n sequences of some positions.
func (m *Model) open(cores *team.Cores, n, positions int) *sequences {
	per := (positions + model.BlockLen - 1) / model.BlockLen
	s := &sequences{m: m, pool: m.NewPool(n * per), rows: make([]model.Row, n), room: per * model.BlockLen}
	if cores != nil {
		s.ws.Seat = cores.Seat()
	}
	for i := range s.rows {
		for k := range per {
			s.rows[i].Blocks = append(s.rows[i].Blocks, int32(i*per+k))
		}
	}
	return s
}

// ready fills every sequence with a context and makes each row one of n tokens
// behind it.
func (s *sequences) ready(context, n int) error {
	for i := range s.rows {
		r := &s.rows[i]
		if context > 0 {
			first := model.Row{Blocks: r.Blocks, Tokens: s.m.tokens(context, i)}
			if err := s.m.Forward(&s.ws, s.pool, []model.Row{first}); err != nil {
				return err
			}
		}
		r.Start, r.Tokens, r.Signals = context, s.m.tokens(n, i+len(s.rows)), true
	}
	return nil
}

// step runs a step and asks for the signals of every row.
func (s *sequences) step() error {
	if err := s.m.Forward(&s.ws, s.pool, s.rows); err != nil {
		return err
	}
	for i := range s.rows {
		if _, err := s.ws.Signals(i); err != nil {
			return err
		}
	}
	return nil
}

// timed is step for a measurement, which goes on when one fails.
func (s *sequences) timed() {
	if err := s.step(); err != nil && s.failed == nil {
		s.failed = err
	}
}

// tokens are n ids without meaning, the same for a seed each time.
func (m *Model) tokens(n, seed int) []int32 {
	ids := make([]int32, n)
	x := uint32(seed)*2654435761 + 12345
	for i := range ids {
		x = x*1664525 + 1013904223
		ids[i] = int32(x>>8) % int32(m.Config.Vocab)
	}
	return ids
}
