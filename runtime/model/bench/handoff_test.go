package bench

import (
	"testing"

	"tokenrouter/kernels"
	"tokenrouter/runtime/model"
)

// TestHandoffsWriteWhatTheModelsWould follows some requests through hand-offs
// and lets the model whose turn it is write the same token from the whole text
// at once.
func TestHandoffsWriteWhatTheModelsWould(t *testing.T) {
	models := []*Model{loadTiny(t, "tiny-37k", ""), loadTiny(t, "tiny-114k", "q8")}
	const context, requests = 20, 3
	p := &pair{context: context, vocab: int32(min(models[0].Config.Vocab, models[1].Config.Vocab)), requests: make([]request, requests)}
	text := make([][2][]int32, requests) // what each model has read, request by request
	for i, m := range models {
		q := m.open(nil, requests, context+handoffs+2)
		defer q.pool.Close()
		if err := q.ready(context+i, 2); err != nil {
			t.Fatal(err)
		}
		p.lanes[i].q = q
		for r := range requests {
			text[r][i] = m.tokens(context+i, r)
		}
	}
	p.reset()
	all := []int{0, 1, 2}
	for n := range 2 * handoffs {
		side := n % 2
		if p.requests[0].pos > context+handoffs-2 && side == 0 { // written over again
			for r := range requests {
				for i := range models {
					text[r][i] = text[r][i][:context+i]
				}
			}
		}
		before := append([]request(nil), p.requests...)
		p.hop(side, all)
		for r := range requests {
			text[r][side] = append(text[r][side], before[r].tokens[:]...)
			if n%31 == 0 || n > 2*handoffs-4 {
				want := writes(t, models[side], text[r][side]) % p.vocab
				if got := p.requests[r].tokens[1]; got != want {
					t.Fatalf("hop %d, request %d: token %d, want %d", n, r, got, want)
				}
			}
			if p.requests[r].tokens[0] != before[r].tokens[1] {
				t.Fatalf("hop %d, request %d: the token before is %d, want %d", n, r, p.requests[r].tokens[0], before[r].tokens[1])
			}
		}
	}
	for i := range p.lanes {
		if err := p.lanes[i].q.failed; err != nil {
			t.Error(err)
		}
	}
}

// writes is the most likely token after a text.
func writes(t *testing.T, m *Model, text []int32) int32 {
	t.Helper()
	q := m.open(nil, 1, len(text))
	defer q.pool.Close()
	q.rows[0].Tokens, q.rows[0].Logits = text, true
	if err := m.Forward(&q.ws, q.pool, []model.Row{q.rows[0]}); err != nil {
		t.Fatal(err)
	}
	var s kernels.Signals
	if err := kernels.Measure(&s, q.ws.Logits(0)); err != nil {
		t.Fatal(err)
	}
	return s.TopK[0].ID
}

func TestMeasureHandoff(t *testing.T) {
	a, b := loadTiny(t, "tiny-37k", ""), loadTiny(t, "tiny-114k", "q8")
	for cores := 1; cores <= 2; cores++ {
		for _, requests := range []int{1, 5} {
			h, err := MeasureHandoff(a, b, cores, requests, quick())
			if err != nil {
				t.Fatal(err)
			}
			if h.Cores != cores || h.Requests != requests || h.InTurn <= 0 || h.SideBySide <= 0 {
				t.Errorf("%+v", h)
			}
		}
	}
}
