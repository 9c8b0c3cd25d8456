package model

// Embedding writes the input embedding of a token into dst, as the forward pass
// reads it, and returns it; false for a token that the model has no row for.
func (m *Model) Embedding(token int32, dst []float32) ([]float32, bool) {
	if token < 0 || int(token) >= m.embed.Rows {
		return dst[:0], false
	}
	if cap(dst) < m.Config.Hidden {
		dst = make([]float32, m.Config.Hidden)
	}
	dst = dst[:m.Config.Hidden]
	m.embed.Row(dst, int(token))
	return dst, true
}
