package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tokenrouter/runtime/guard"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tiny"
)

// modelsSynthCmd makes a model of random weights.
type modelsSynthCmd struct {
	Shape  string `arg:"" help:"One of ${shapes}."`
	Out    string `short:"o" required:"" placeholder:"FILE.gguf|DIR" help:"Where to: a file that ends in .gguf, or a folder for safetensors. What is there is not overwritten."`
	Format string `default:"" placeholder:"FORMAT" help:"Of the weights: ${ggufformats} in a GGUF file, ${folderformats} in a folder (default: the first of them)."`
	Seed   uint64 `default:"1" help:"Seed of the weights; a shape and a seed make the same model in any file."`
	Shards int    `default:"1" help:"Files that the weights of a folder are spread over."`
}

// maxShards is far above what published checkpoints have.
const maxShards = 1000

func (s *modelsSynthCmd) Run() error {
	shape, err := synth.Find(s.Shape)
	if err != nil {
		return usage(err)
	}
	if end := filepath.Ext(s.Out); end != ".gguf" && strings.EqualFold(end, ".gguf") {
		return usage(fmt.Errorf("%s would be a folder; the ending of a file is .gguf, in small letters", s.Out))
	}
	if of := synth.Formats(s.Out); s.Format != "" && !slices.Contains(of, s.Format) {
		return usage(fmt.Errorf("--format %q: for %s it is one of %s", s.Format, s.Out, strings.Join(of, ", ")))
	}
	if s.Shards < 1 || s.Shards > maxShards {
		return usage(fmt.Errorf("--shards %d is outside 1 to %d", s.Shards, maxShards))
	}
	if s.Shards > 1 && strings.HasSuffix(s.Out, ".gguf") {
		return usage(fmt.Errorf("--shards %d: only the weights of a folder are spread over files, and %s is one file", s.Shards, s.Out))
	}
	if _, err := os.Lstat(s.Out); err == nil {
		return usage(fmt.Errorf("%s is there already; name another place, or take it away first", s.Out))
	}
	ctx, stop := interruptible()
	defer stop()
	begin := time.Now()
	if err := s.write(ctx, shape); err != nil {
		return err
	}
	fmt.Printf("%s: %s of random weights, %s in %.1f s\n", s.Out, count(shape.Params()), bytesText(sizeOf(s.Out)), time.Since(begin).Seconds())
	return nil
}

// write makes the model beside its place and puts it there when it is whole, so
// that no half of one is ever found.
func (s *modelsSynthCmd) write(ctx context.Context, shape synth.Shape) error {
	dir, base := filepath.Split(filepath.Clean(s.Out))
	part, err := os.MkdirTemp(filepath.Clean(dir+"."), ".synth-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", s.Out, err)
	}
	at := filepath.Join(part, base)
	bar := newLoadBar(os.Stderr, "making")
	defer bar.clear()
	bar.begin(base)
	made := make(chan error, 1)
	guard.New(crashFolder()).Go("making "+base, func(c guard.Crash) { made <- fellOver(c) }, func() {
		made <- synth.Write(at, shape, synth.Options{Format: s.Format, Seed: s.Seed, Shards: s.Shards, Tokenizer: tiny.Tokenizer(), Progress: bar.at})
	})
	select {
	case err = <-made:
		if err == nil {
			err = os.Rename(at, s.Out)
		}
	case <-ctx.Done():
		err = &exitError{exitInterrupted, errors.New("interrupted; nothing was written")}
	}
	return errors.Join(err, os.RemoveAll(part))
}

// sizeOf is that of a file, or of those in a folder.
func sizeOf(path string) (n int64) {
	_ = filepath.Walk(path, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
