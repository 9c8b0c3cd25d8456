// Package reload tells when a router file has new content.
//
// The invariant that matters: what is reported is content, not events. Whatever
// way an editor saves (rename over, truncate and write, backup and copy, a
// swapped symlink), the callback comes once, with the final text, and it does
// not come when the text is the same as before.
//
// Notifications of the file system make it quick; a slow poll makes it sure, so
// the package works where there are none. Read watch.go.
package reload
