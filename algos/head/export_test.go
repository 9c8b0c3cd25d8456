package head

// MaxHeld is for tests.
const MaxHeld = maxHeld

// Held is how many names the library knows something of.
func (l *Library) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
