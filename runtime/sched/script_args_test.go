package sched_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"tokenrouter/runtime/event"
)

type args []datadriven.CmdArg

func (a args) vals(key string) []string {
	for _, x := range a {
		if x.Key == key {
			return x.Vals
		}
	}
	return nil
}

func (a args) has(key string) bool {
	return slices.ContainsFunc(a, func(x datadriven.CmdArg) bool { return x.Key == key })
}

func (a args) str(key string) string { return strings.Join(a.vals(key), ",") }

func (a args) num(key string) int {
	n, _ := strconv.Atoi(a.str(key))
	return n
}

func (a args) nums(key string) []int {
	var out []int
	for _, v := range a.vals(key) {
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(fmt.Sprintf("%s=%s is no number", key, v))
		}
		out = append(out, n)
	}
	return out
}

func (a args) tokens(key string) []event.Token {
	var out []event.Token
	for _, n := range a.nums(key) {
		out = append(out, event.Token(n))
	}
	return out
}

// core reads the first argument as a subserver, req as a request "r7".
func (a args) core() event.Peer {
	n, err := strconv.Atoi(a[0].Key)
	if err != nil {
		panic(fmt.Sprintf("%q is no subserver", a[0].Key))
	}
	return event.Peer(n)
}

func (a args) req(i int) event.ReqID { return reqID(a[i].Key) }

func reqID(s string) event.ReqID {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "r"), 10, 64)
	if err != nil || s[0] != 'r' {
		panic(fmt.Sprintf("%q is no request", s))
	}
	return event.ReqID(n)
}

// policy reads a policy line.
func (a args) policy() *event.Policy {
	p := &event.Policy{W: a.ns("W")}
	switch a[0].Key {
	case "fixed":
		p.Kind, p.B = event.Fixed, a.nums("B")
	case "table":
		p.Kind = event.Table
		for n := 1; a.vals(fmt.Sprint("n", n)) != nil; n++ {
			p.Table = append(p.Table, a.nums(fmt.Sprint("n", n)))
		}
	case "lock-step":
		p.Kind = event.LockStep
	case "ahead":
		p.Kind, p.Forecast = event.LookAhead, &event.Forecast{Latency: a.ns("latency")}
		for i, step := range a.vals("step") {
			p.Forecast.Step = append(p.Forecast.Step, event.StepTime{Base: ns(step)})
			p.Forecast.Share = append(p.Forecast.Share, a.nums(fmt.Sprint("share", i)))
		}
	}
	return p
}

func (a args) ns(key string) int64 { return ns(a.str(key)) }

func ns(s string) int64 {
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		panic(err)
	}
	return int64(d)
}
