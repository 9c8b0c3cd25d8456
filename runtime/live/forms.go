package live

import (
	"fmt"
	"strconv"
	"strings"

	"tokenrouter/runtime/event"
)

// ClockText is a clock with the profile it is paced by.
func ClockText(clock, profile string) string {
	if profile == "" {
		return clock
	}
	return clock + " " + profile
}

// speedText is a factor on the clock; 0 is as fast as the machine can.
func speedText(f float64) string {
	if f == 0 {
		return "unbounded"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// ParsePolicy reads the form of the --batch flag for n subservers: "eager",
// "fixed:B0,B1,...", "table" (also for an empty text), "look-ahead" or
// "lock-step".
func ParsePolicy(s string, n int) (event.Policy, error) {
	if s == "" {
		return event.Policy{Kind: event.Table}, nil
	}
	for _, k := range []event.PolicyKind{event.Eager, event.Table, event.LookAhead, event.LockStep} {
		if s == k.String() {
			return event.Policy{Kind: k}, nil
		}
	}
	list, ok := strings.CutPrefix(s, event.Fixed.String()+":")
	if !ok {
		return event.Policy{}, fmt.Errorf("batch policy %q is none of eager, fixed:B0,B1, table, look-ahead and lock-step", s)
	}
	p := event.Policy{Kind: event.Fixed}
	for part := range strings.SplitSeq(list, ",") {
		b, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || b < 1 {
			return event.Policy{}, fmt.Errorf("batch policy %q: %q is not a threshold of 1 or more", s, part)
		}
		p.B = append(p.B, b)
	}
	if len(p.B) != n {
		return event.Policy{}, fmt.Errorf("batch policy %q gives %d thresholds for %d models", s, len(p.B), n)
	}
	return p, nil
}
