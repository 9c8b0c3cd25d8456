package event

import "strconv"

// ReqID names one request for the whole life of a session; ids are given in
// rising order from 1 and never reused.
type ReqID uint64

// Token is a row of the vocabulary.
type Token = int32

// Peer is the index of a subserver in the order of the models given, small
// first. The front, home of every request, is 0.
type Peer int16

// Front is the subserver that admits and finishes requests.
const Front Peer = 0

// None stands where no subserver is meant.
const None Peer = -1

// Role is the name under which routers, screens and exports know subserver p of
// n: small, middle, large. Clusters of more than three count the middle ones.
func Role(p Peer, n int) string {
	switch {
	case p < 0 || int(p) >= n:
		return "?"
	case p == 0:
		return "small"
	case int(p) == n-1:
		return "large"
	case n == 3:
		return "middle"
	default:
		return "middle" + strconv.Itoa(int(p))
	}
}

// Roles lists the role of each of n subservers in order.
func Roles(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = Role(Peer(i), n)
	}
	return out
}
