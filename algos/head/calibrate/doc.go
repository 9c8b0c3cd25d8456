// Package calibrate chooses the threshold under which a router gives the large
// model a wanted share of the tokens, in use: the share is that of routed answers,
// since what the large model writes changes what comes after it.
//
// The invariant that matters: the share that is reported was counted in a run under
// the very threshold that is reported; nothing is interpolated.
//
// Read find.go, then score.go for what is compared with a threshold.
package calibrate
