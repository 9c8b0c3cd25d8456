// Package eval says how good scores are against labels: how well they rank (area
// under the ROC, average precision), what a threshold on them buys (recall at a
// share of the rows, share at a recall), and whether they are probabilities
// (reliability, Brier).
//
// The invariant that matters: rows of one score are one point of every curve, so
// that no figure depends on the order of rows; and intervals resample problems, not
// rows, since the rows of a problem are alike.
//
// Read eval.go, then auc.go for the curves.
package eval
