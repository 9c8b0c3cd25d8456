// Command tokenrouter is a workbench for token-level routing: it runs a small
// and a large language model side by side, lets a Lua router decide token by
// token which of them writes, and shows, records and exports what happens.
//
// This package is flags and wiring. Read flags.go and cluster.go for how a runtime
// is put together from flags, flags_models.go and shelf.go for where its models
// come from, then board.go (terminal), drive.go and run.go (without one), export.go
// and plan.go.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/model/synth"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/workload"
)

// Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// endSignals end a run or the board in order. A hang-up is one of them unless
// whoever started the program (nohup) has it ignored.
func endSignals() []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		s = append(s, syscall.SIGHUP)
	}
	return s
}

// cli is the command line. The board is what runs when no command is named.
type cli struct {
	Board     boardCmd     `cmd:"" default:"withargs" set:"clock=paced" help:"Open the board: two models, a router, live (the default)."`
	Run       runCmd       `cmd:"" set:"clock=live" help:"Run requests without a terminal and print a summary."`
	Sim       simCmd       `cmd:"" set:"clock=sim" help:"Run requests in virtual time, as fast as the machine can, and print a summary."`
	Ablate    ablateCmd    `cmd:"" set:"clock=sim" help:"Run the baselines and the policies side by side: what each step is worth."`
	Grid      gridCmd      `cmd:"" help:"Run the five algorithms by three workloads against their baselines in virtual time, and take the ratios apart by cause."`
	Sweep     sweepCmd     `cmd:"" set:"clock=sim" help:"Run routers at many settings over the same problems: right answers against large tokens, tokens/s and cost."`
	Frontier  frontierCmd  `cmd:"" help:"Show what sweeps came to: curves, areas, intervals, the Pareto set."`
	Runlength runlengthCmd `cmd:"" help:"Measure for how many steps requests stay at a model, test it against the geometric law, and check the plan on it."`
	Plan      planCmd      `cmd:"" help:"Predict tokens/s and the best thresholds B*, without running anything."`
	Cost      costCmd      `cmd:"" help:"List, show and fit cost profiles: how long a step of a model takes."`
	Replay    replayCmd    `cmd:"" help:"Feed recorded events to fresh cores and tell where they decide otherwise."`
	Export    exportCmd    `cmd:"" help:"Write a session in a form that other tools read."`
	Sessions  sessionsCmd  `cmd:"" help:"List recorded sessions."`
	Head      headCmd      `cmd:"" help:"Trained heads: gather rows, train, judge, choose thresholds, list."`
	Models    modelsCmd    `cmd:"" help:"List models, say what one is, or make one of random weights."`
	Bench     benchCmd     `cmd:"" help:"Measure the engine against the limits of this machine."`
	Check     checkCmd     `cmd:"" help:"Read a router without running it: what is wrong, what a call costs."`
	Routers   routersCmd   `cmd:"" help:"List the routers that can be named."`
	Version   versionCmd   `cmd:"" help:"Print the version."`

	PrintVersion kong.VersionFlag `name:"version" help:"Print the version."`
}

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() { os.Exit(realMain(os.Args[1:])) }

func realMain(args []string) int {
	for _, a := range args {
		if !utf8.ValidString(a) { // the parser would change such bytes
			fmt.Fprintf(os.Stderr, "tokenrouter: the argument %q is not valid UTF-8; give names and texts as UTF-8\n", a)
			return exitUsage
		}
	}
	if err := cpu.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "tokenrouter:", err)
		return exitUsage
	}
	var c cli
	code := -1
	parser, err := kong.New(
		&c, kong.Name("tokenrouter"),
		kong.Description("A workbench for token-level LLM routing. Without a command it opens the board."),
		kong.UsageOnError(),
		kong.Exit(func(n int) { code = n }),
		words(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tokenrouter:", err)
		return exitFailed
	}
	ctx, err := parser.Parse(args)
	if code >= 0 {
		return code // help was printed
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "tokenrouter: %v; see %s --help\n", err, asked(err))
		return exitUsage
	}
	if err := ctx.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "tokenrouter:", onTerminal(err.Error()))
		if e, ok := errors.AsType[*exitError](err); ok {
			return e.code
		}
		return exitFailed
	}
	return 0
}

// words are what help texts are filled in with.
func words() kong.Vars {
	return kong.Vars{
		"models": strings.Join(tiny.Names(), ", "), "shapes": strings.Join(shapeNames(), ", "),
		"ggufformats": strings.Join(synth.Formats("x.gguf"), ", "), "folderformats": strings.Join(synth.Formats("x"), ", "),
		"workloads": strings.Join(workload.Presets(), ","), "families": strings.Join(workload.Families(), ", "),
		"version": "tokenrouter " + version(),
	}
}

// asked is the command that a parse error is about, as far as it was understood.
func asked(err error) string {
	if e, ok := errors.AsType[*kong.ParseError](err); ok && e.Context != nil {
		if node := e.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "tokenrouter"
}

// usage marks an error as one of the command line, unless it has a code already.
func usage(err error) error {
	if _, coded := errors.AsType[*exitError](err); err == nil || coded {
		return err
	}
	return &exitError{code: exitUsage, err: err}
}

// version is the module's version as the go command recorded it, with the
// revision where there is one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "+" + s.Value[:12]
			}
		}
	}
	return v
}

type versionCmd struct{}

func (versionCmd) Run() error {
	fmt.Println("tokenrouter", version())
	fmt.Println(kernelsText())
	return nil
}

// shapeNames are the shapes of models that can be made.
func shapeNames() (names []string) {
	for _, s := range synth.Shapes() {
		names = append(names, s.Name)
	}
	return names
}
