package pair

// Held is the number of KV blocks that texts have.
func (p *Pair) Held() (n int) {
	for i := range p.sides {
		n += len(p.sides[i].users) - len(p.sides[i].free)
	}
	return n
}
