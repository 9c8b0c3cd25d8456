// Package theme turns what the screens mean (a role, a warning, a prediction)
// into what a terminal can show.
//
// The invariant that matters: hue is never the only mark. Every writer also has
// an attribute (plain, underline, bold, struck through), and where a terminal
// has no attributes either, brackets around the token.
//
// Read theme.go for the meanings, palette.go for the colours, which keep a
// contrast of 4.5:1 on the usual backgrounds, and style.go for how a style is
// made of them: once, not for every token.
package theme
