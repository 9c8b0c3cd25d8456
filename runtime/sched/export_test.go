package sched

// Collide makes every hash of the prefix cache equal (case D3).
func (c *Core) Collide() { c.pool.Collide() }
