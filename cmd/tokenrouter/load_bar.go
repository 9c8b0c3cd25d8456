package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"tokenrouter/runtime/model"
)

// loadBar tells how far the loading or making of models has come, on standard
// error: on a terminal in a line that is written anew, and everywhere in a line
// for each model that was loaded.
type loadBar struct {
	out   io.Writer
	doing string

	mu    sync.Mutex // at is called by whoever packs weights
	live  liveLine
	now   func() time.Time
	what  string
	since time.Time
	shown time.Time
	over  bool // what is still told of it comes too late
}

func newLoadBar(f *os.File, doing string) *loadBar {
	return &loadBar{out: f, doing: doing, live: newLiveLine(f), now: time.Now}
}

// begin starts the clock for a model.
func (b *loadBar) begin(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.what, b.since, b.over = what, b.now(), false
	b.live.put(b.doing + " " + what)
}

// showEvery is how often the line is written anew at most.
const showEvery = 50 * time.Millisecond

// at is told how many bytes of how many are loaded.
func (b *loadBar) at(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.over || total <= 0 || now.Sub(b.shown) < showEvery {
		return
	}
	b.shown = now
	b.live.putEnd(b.doing+" "+b.what, fmt.Sprintf("  %s of %s, %d %%  %.1f s", bytesText(done), bytesText(total), 100*done/total, now.Sub(b.since).Seconds()))
}

// clear ends the line, whatever at is told later.
func (b *loadBar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.live.clear()
}

// done says what was loaded, how it is held and how long that took.
func (b *loadBar) done(params int64, m *model.Model) {
	fmt.Fprintf(b.out, "%s: %s parameters, %s, %s in %.2f s\n", b.what, count(params), heldText(m.Format(), m.KVFormat()), bytesText(m.Bytes()), b.now().Sub(b.since).Seconds())
	for _, note := range m.Notes() {
		fmt.Fprintf(b.out, "  %s\n", note)
	}
}
