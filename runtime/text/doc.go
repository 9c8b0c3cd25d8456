// Package text is the last stage of a request on its way to the client: it
// turns committed tokens, which several subservers deliver out of order, into
// text that may be sent.
//
// The stage belongs to the request, not to a subserver, so a hand-off in the
// middle of a character or of a stop string changes nothing.
//
// Invariants:
//   - What the client has received is always valid UTF-8, is a prefix of the
//     final text, and never contains any part of a completed stop string.
//   - The final text, the stop position and the end reason depend on the
//     bytes in the order of their positions, not on how they were cut into
//     tokens nor on the order in which tokens arrived.
//   - Nothing is lost: bytes are sent, held, part of a stop string, cut after
//     it, or reported by [Stage.Flush].
//
// Read stage.go first, then stop.go.
package text
