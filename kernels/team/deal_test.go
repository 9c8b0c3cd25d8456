package team

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestDeal runs the scripts of who helps whom.
//
//	cores n            takes n cores
//	seats a b:2        makes seats; b has a limit of 2 workers
//	begin a, end a     a step begins or ends
//	do a               a call inside a step
//	pass 60us          lets time pass
//
// Each command but the first two prints the seats with the helpers dealt to
// them.
func TestDeal(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var now atomic.Int64
		now.Store(1)
		var c *Cores
		var names []string
		seats := map[string]*Seat{}
		dealt := func() string {
			var b strings.Builder
			for _, name := range names {
				fmt.Fprintf(&b, "%s:", name)
				for _, h := range c.helpers {
					if h.seat.Load() == seats[name] {
						fmt.Fprintf(&b, " %d", h.worker)
					}
				}
				b.WriteString("\n")
			}
			return b.String()
		}
		t.Cleanup(func() {
			if c != nil {
				c.Close()
			}
		})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			arg := func(i int) string { return d.CmdArgs[i].Key }
			switch d.Cmd {
			case "cores":
				if c != nil {
					c.Close()
				}
				n := 0
				if _, err := fmt.Sscan(arg(0), &n); err != nil {
					t.Fatal(err)
				}
				c, names = newCores(n, now.Load), nil
				return ""
			case "seats":
				for _, a := range d.CmdArgs {
					name, limit, limited := strings.Cut(a.Key, ":")
					s := c.Seat()
					if limited {
						n := 0
						if _, err := fmt.Sscan(limit, &n); err != nil {
							t.Fatal(err)
						}
						s.Limit(n)
					}
					names, seats[name] = append(names, name), s
				}
				return ""
			case "begin":
				seats[arg(0)].Begin()
			case "end":
				seats[arg(0)].End()
			case "do":
				checked(t, seats[arg(0)], 10)
			case "pass":
				p, err := time.ParseDuration(arg(0))
				if err != nil {
					t.Fatal(err)
				}
				now.Add(int64(p))
			default:
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			return dealt()
		})
	})
}
