// Package export turns a session into files for other tools: JSONL with a row
// per token, and a trace in the Chrome JSON format, which ui.perfetto.dev and
// many other readers open.
//
// The invariant that matters: the same tape gives the same bytes. Writers
// stream: memory grows with what is in flight, not with the session.
//
// Read jsonl.go for the row, trace.go for what becomes which track, and
// docs/format/README.md for both formats.
package export
