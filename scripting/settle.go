package scripting

// calibrated is a Scorer that knows the thresholds that heads were calibrated for.
type calibrated interface {
	Threshold(head string) (threshold float64, ok bool)
}

// Settle gives each knob that names a head the threshold of that head's manifest
// for its default, within the knob's range; the file's own default stands where the
// scorer knows of none. Who compiles a program settles it, if at all, before the
// first VM loads it: every VM of a session then has the same defaults.
func (p *Program) Settle(s Scorer) {
	for i, d := range p.Params {
		p.Params[i] = d.Settled(s)
	}
}

// Settled is the knob with the default that Settle gives it.
func (d Param) Settled(s Scorer) Param {
	c, ok := s.(calibrated)
	if !ok || d.Head == "" {
		return d
	}
	if t, ok := c.Threshold(d.Head); ok {
		d.Default, d.Calibrated = min(max(t, d.Min), d.Max), true
	}
	return d
}

// settled is a knob that p's file has just declared, as p was settled.
func (p *Program) settled(d Param) Param {
	for _, s := range p.Params {
		file := s
		file.Default, file.Calibrated = d.Default, false
		if file == d {
			return s
		}
	}
	return d
}

// source says where the default comes from, as records name it.
func (d Param) source() string {
	if d.Calibrated {
		return "head"
	}
	return "file"
}
