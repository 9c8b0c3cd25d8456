package paced

// TimersOnly lets a pacer run on the virtual time of a synctest bubble, of which
// the system's sleep knows nothing.
func (p *Pacer) TimersOnly() *Pacer {
	p.nap = nil
	return p
}
