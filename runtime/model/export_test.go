package model

import (
	"tokenrouter/kernels/matmul"
	"tokenrouter/runtime/model/family"
)

// RunAll is runAll, for tests.
var RunAll = runAll

// SetAvailable makes a number of bytes what the machine has left, and returns
// the way back.
func SetAvailable(n int64) (restore func()) {
	was := available
	available = func() (int64, error) { return n, nil }
	return func() { available = was }
}

// Matrix is the matrix that holds the tensor of a role, or begins with it.
func (m *Model) Matrix(role family.Role, l int) *matmul.Matrix {
	switch role {
	case family.Embed:
		return m.embed
	case family.Head:
		return m.head
	case family.Q:
		return m.layers[l].qkv
	case family.O:
		return m.layers[l].o
	case family.Gate:
		return m.layers[l].gateUp
	}
	return m.layers[l].down
}

// Vector is the vector of a role; biases of fused matrices are one.
func (m *Model) Vector(role family.Role, l int) []float32 {
	if role == family.Norm {
		return m.norm
	}
	w := &m.layers[l]
	switch role {
	case family.Norm1:
		return w.norm1
	case family.Norm2:
		return w.norm2
	case family.QNorm:
		return w.qNorm
	case family.KNorm:
		return w.kNorm
	case family.QBias:
		return w.qkvBias
	case family.OBias:
		return w.oBias
	case family.GateBias:
		return w.gateUpBias
	}
	return w.downBias
}
