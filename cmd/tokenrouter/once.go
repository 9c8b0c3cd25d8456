package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"

	"tokenrouter/runtime/tape"
	"tokenrouter/tui/board"
	"tokenrouter/tui/theme"
)

// snapshot runs the cluster for a while and prints the board once, as text.
func (b *boardCmd) snapshot(c *cluster) error {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	screen := &screenRuntime{cluster: c}
	sub := c.runtime.Tape().Subscribe()
	profile := colorprofile.Detect(os.Stdout, os.Environ())
	model := board.New(screen.Info(), theme.New(theme.Options{
		Profile: profile, Light: b.Theme == "light", Palette: theme.Palette(b.Palette), ASCII: b.ASCII,
	}))
	c.runtime.Start()
	b.watch(ctx, model, sub)
	model.SetStatus(screen.Status())
	w, h := size()
	text := board.Text(model, w, h, c.runtime.Now(), profile < colorprofile.ANSI)
	err := c.close(context.Background(), "snapshot taken")
	fmt.Println(text)
	if ctx.Err() != nil {
		err = errors.Join(err, &exitError{exitInterrupted, errors.New("interrupted; the snapshot is of the time until then")})
	}
	return err
}

// watch folds the tape for as long as the snapshot is to run. Several times a
// second, so that a long run keeps no records in memory.
func (b *boardCmd) watch(ctx context.Context, model *board.Model, sub *tape.Sub) {
	over := time.NewTimer(time.Duration(b.Seconds * float64(time.Second)))
	defer over.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	var recs []tape.Record
	for running := true; running; {
		select {
		case <-look.C:
		case <-over.C:
			running = false
		case <-ctx.Done():
			running = false
		}
		recs = sub.Next(recs[:0], 0)
		model.Add(recs)
		clear(recs)
	}
}

// size is the snapshot's: the terminal's if there is one, else COLUMNS and
// LINES, else 120 x 36.
func size() (width, height int) {
	if w, h, err := term.GetSize(os.Stdout.Fd()); err == nil && w > 0 && h > 1 {
		return w, h - 1
	}
	number := func(name string, or int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
			return min(n, 1000)
		}
		return or
	}
	return number("COLUMNS", 120), number("LINES", 36)
}
