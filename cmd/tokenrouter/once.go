package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"

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
	b.watch(ctx, c, model, sub)
	model.SetStatus(screen.Status())
	w, h := size()
	text := board.Text(model, w, h, c.runtime.Now(), profile < colorprofile.ANSI)
	err := c.close(context.Background(), "snapshot taken")
	_, e := fmt.Println(text)
	err = errors.Join(err, e)
	if ctx.Err() != nil {
		err = errors.Join(err, &exitError{exitInterrupted, errors.New("interrupted; the snapshot is of the time until then")})
	}
	return err
}

// watch folds the tape until the time of the snapshot has come. As records come,
// so that a long run keeps none in memory.
func (b *boardCmd) watch(ctx context.Context, c *cluster, model *board.Model, sub *tape.Sub) {
	var recs []tape.Record
	for running := true; running; {
		select {
		case <-sub.Ready():
		case <-c.runtime.Done():
			running = false
		case <-ctx.Done():
			running = false
		}
		for recs = sub.Next(recs[:0], 4096); len(recs) > 0; recs = sub.Next(recs[:0], 4096) {
			model.Add(recs)
			clear(recs)
		}
	}
	sub.Close()
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
