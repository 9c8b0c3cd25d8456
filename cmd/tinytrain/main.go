// Command tinytrain trains models of the embedded family: small ones of the Qwen3
// architecture, on problems of runtime/workload, with the family's tokenizer. It
// writes checkpoints that the program opens like any other, and states from which
// it goes on.
//
// Read data.go for what is learnt, run.go for the loop, score.go for how a
// checkpoint is judged; the arithmetic is runtime/model/train.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Train trainCmd `cmd:"" default:"withargs" help:"Train a model, or go on with one (the default)."`
	Score scoreCmd `cmd:"" help:"Count the right answers of a checkpoint on problems that are for evaluation."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c cli
	k := kong.Parse(&c, kong.Name("tinytrain"), kong.Description("Train models of the embedded family."), kong.UsageOnError())
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "tinytrain:", err)
		stop()
		os.Exit(1)
	}
}
