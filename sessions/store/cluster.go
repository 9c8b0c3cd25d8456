package store

import (
	"errors"
	"fmt"
	"hash/fnv"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/sched"
)

// Cluster is how the cores of the session were set up, small first: fed the
// events that the tape has of each, they order what it says they ordered.
func (m *Manifest) Cluster() ([]sched.Config, error) {
	n := len(m.Models)
	switch {
	case m.Format == 1:
		return nil, errors.New("the session is of format 1, which does not say how its cores were set up; record it anew to replay it")
	case n == 0:
		return nil, errors.New("the manifest names no models, so there are no cores to set up")
	}
	seats, pools := make([]int, n), make([]int, n)
	for i := range n {
		seats[i], pools[i] = m.Seats, m.KVTokens
	}
	out := make([]sched.Config, n)
	for i := range out {
		out[i] = sched.Config{
			Self: event.Peer(i), Seats: seats, KVTokens: pools, Block: m.Core.Block,
			Chunk: m.Core.Chunk, Budget: m.Core.Budget, NoPrefix: m.Core.NoPrefix, Overcommit: m.Core.Overcommit,
			MaxActive: m.Core.MaxActive, Resubmit: m.Core.Resubmit, Timeout: m.Core.Timeout,
			Domain: m.Models[i].Domain(),
		}
	}
	return out, nil
}

// Domain tells the KV of one model and tokenizer from that of any other.
func (m *Model) Domain() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, m.Hash, m.Vocab)
	return h.Sum64()
}
