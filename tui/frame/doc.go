// Package frame composes screens from rows of known width: lines, boxes, bars
// and charts, with and without box and block characters.
//
// The invariant that matters: a Row's W is what its text measures, and no Line
// grows wider than it was made for. All text that is put on a line is cleaned on
// the way, so that control codes and escape sequences of models, files and
// errors are shown and never executed, and one function (Cells) says how wide
// anything is.
//
// Read cells.go for measuring and cleaning, line.go for composing, chart.go and
// bar.go for what is drawn, glyph.go for the characters used.
package frame
