// Package event holds the facts that go into a subserver's core and the orders
// that come out of it: plain data without behaviour, the vocabulary that every
// other room shares.
//
// The invariant that matters: a value is never changed after it has been handed
// to Step, returned by Step or appended to the tape. Slices inside it may
// therefore be shared freely between goroutines.
//
// Read event.go for what a core is told, command.go for what it orders, and
// peer.go for the message that carries a request from one subserver to another.
// codec.go gives the stable binary form that sessions store.
package event
