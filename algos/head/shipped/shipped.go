package shipped

import "embed"

// Files holds the shipped heads. The folder's Go files are among them, so that there
// is something to embed before there is a head.
//
//go:embed *
var Files embed.FS
