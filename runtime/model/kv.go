package model

import "tokenrouter/kernels"

// KV holds the keys and values of one sequence in one model. It grows when
// needed and never shrinks, so it can be used again after Reset.
type KV struct {
	m      *Model
	n      int
	caches []kernels.Cache // [layer*KVHeads + head]
	step   bool            // is in the step under way
}

// NewKV makes an empty KV for this model.
func (m *Model) NewKV() *KV {
	kv := &KV{m: m, caches: make([]kernels.Cache, m.Config.Layers*m.Config.KVHeads)}
	for i := range kv.caches {
		kv.caches[i] = kernels.NewCache(m.Config.HeadDim)
	}
	return kv
}

// Len is the number of positions held.
func (kv *KV) Len() int { return kv.n }

// Cap is the number of positions that fit without growing.
func (kv *KV) Cap() int { return kv.caches[0].Room() }

// Reset forgets everything and keeps the memory.
func (kv *KV) Reset() { kv.n = 0 }

// grow makes room for n positions, doubling so that copying stays linear.
func (kv *KV) grow(n int) {
	room := kv.Cap()
	if n <= room {
		return
	}
	n = min(max(n, 2*room, 64), max(n, kv.m.Config.MaxPos))
	for i := range kv.caches {
		kv.caches[i].Grow(n)
	}
}
