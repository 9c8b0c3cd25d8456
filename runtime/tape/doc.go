// Package tape is the one ordered stream of typed records that everything seen
// or stored is a fold of: screens, recorder, metrics, exporters and comparers.
//
// The invariant that matters: records are appended once, in one order, and never
// changed; a subscription sees every record from its start on and never makes
// the appender wait. Order is promised per core; across cores only cause before
// effect.
//
// Read record.go for what a record can say and tape.go for how it is passed on.
package tape
