package scripting

import "tokenrouter/runtime/event"

// Call is a call of a router's function that a dry run made, with all that it was
// given, so that it can be made again.
type Call struct {
	Hook  string // route, send or receive
	At    event.Peer
	Row   Row           // of route and send
	State []byte        // send: r.state as route left it
	Dest  event.Peer    // send
	Msg   event.PeerReq // receive
	Held  []event.Token // receive: what the subserver holds
}

// Calls is [DryRun], and gives the calls that it made, in their order.
func Calls(p *Program, env Env, rows []Row) (calls []Call, err error) {
	err = dry(p, env, rows, func(c *Call) { calls = append(calls, *c) })
	return calls, err
}

// Repeat makes a call again. It counts for nothing: the fault is what the call
// said, and a router without the function is not called.
func (vm *VM) Repeat(c *Call) (fault string) {
	switch c.Hook {
	case "route":
		return vm.Route(&c.Row).Fault
	case "send":
		row := c.Row
		row.State = c.State
		_, _, fault := vm.Send(&row, c.Dest)
		return fault
	}
	return vm.Receive(&c.Msg, c.Held).Fault
}

// Has says that the router defines a function that the runtime calls.
func (vm *VM) Has(hook string) bool {
	switch hook {
	case "route":
		return vm.route != nil
	case "send":
		return vm.send != nil
	}
	return vm.receive != nil
}

// Spent is how many VM instructions the last call took, with what built-in
// functions are charged for.
func (vm *VM) Spent() int64 { return vm.meter.limit - max(vm.meter.left, 0) }

// TrialScorer scores where nothing computes, as a dry run does: 0, 0.5 and 1 in
// turn, whatever the head.
func TrialScorer() Scorer { return &trialScorer{turn: new(int)} }
