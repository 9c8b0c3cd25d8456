package app

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"tokenrouter/runtime/tape"
)

// frameMsg says that the board has changed.
type frameMsg struct{}

// frameTime is the least time between two looks at the tape.
const frameTime = time.Second / fps

// atOnce is how many records are folded before the board may be drawn.
const atOnce = 2048

// feed starts the two goroutines between tape and screen.
func (a *App) feed(ctx context.Context, send func(tea.Msg), wg *sync.WaitGroup) {
	poke := make(chan struct{}, 1)
	wg.Add(2)
	a.cfg.Go("screen fold", func() {
		defer wg.Done()
		a.folding(ctx, poke)
	})
	a.cfg.Go("screen frames", func() {
		defer wg.Done()
		frames(ctx, poke, send)
	})
}

// folding takes every record into the board, whatever the screen does. While
// nothing happens a second passes between two frames, for the clock; none in a
// pause.
func (a *App) folding(ctx context.Context, poke chan<- struct{}) {
	defer a.sub.Close()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	rest := time.NewTimer(frameTime)
	defer rest.Stop()
	var recs []tape.Record
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.sub.Ready():
			recs = a.fold(recs)
		case <-second.C:
			if a.rt.Status().Paused {
				continue
			}
		}
		select {
		case poke <- struct{}{}:
		default:
		}
		rest.Reset(frameTime)
		select {
		case <-ctx.Done():
			return
		case <-rest.C:
		}
	}
}

// fold reads all there is; recs is scratch.
func (a *App) fold(recs []tape.Record) []tape.Record {
	for {
		recs = a.sub.Next(recs[:0], atOnce)
		if len(recs) == 0 {
			return recs
		}
		a.mu.Lock()
		a.board.Add(recs)
		a.mu.Unlock()
		clear(recs)
	}
}

// frames asks for a frame when something changed. It waits for the program, and
// so for the terminal; what changes meanwhile is in the next frame.
func frames(ctx context.Context, poke <-chan struct{}, send func(tea.Msg)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-poke:
			send(frameMsg{})
		}
	}
}
