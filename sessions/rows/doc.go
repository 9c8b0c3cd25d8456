// Package rows joins the records of a tape into token rows: what each decode
// step proposed, who proposed it, in which batch, what the router decided and
// whether the token stands in the request's text.
//
// The invariant that matters: the committed rows of a finished request are
// exactly its emitted tokens, one for each position. Tokens that a core
// committed behind the end of a request (a stop string was found later, the
// client was gone) are no rows.
//
// Read index.go for what must be known of the whole tape first, then rows.go
// for the join.
package rows
