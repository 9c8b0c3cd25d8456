package live

import "time"

// Look lets the planner read what is on the tape and look at it once.
func (r *Runtime) Look() {
	r.planner.read()
	r.planner.look()
}

// Took is how long the newest table took, which may be set.
func (r *Runtime) Took() *time.Duration { return &r.planner.took }

// Kept is how many tables are kept.
func (r *Runtime) Kept() int { return r.planner.shelf.Len() }

// GuardW is the guard W by what is measured or the cost profile says.
func (r *Runtime) GuardW() time.Duration { return time.Duration(r.ctl.guardW()) }
