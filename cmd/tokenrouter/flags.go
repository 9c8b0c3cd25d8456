package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/model/tiny"
	"tokenrouter/runtime/rng"
	"tokenrouter/runtime/workload"
)

// clusterFlags say what is hosted and how it runs; board and run share them.
type clusterFlags struct {
	Models  string            `default:"tiny-37k,tiny-3.7m" placeholder:"A,B[,C]" help:"Two or three models, small first (default: ${default}). Embedded: ${models}."`
	Router  string            `default:"r2r" placeholder:"NAME|FILE" help:"Router: a shipped name, one of --routers, or a Lua file (default: ${default})."`
	Routers string            `default:"routers" placeholder:"DIR" help:"Folder of your own routers; the first edit of a shipped one copies it there (default: ${default})."`
	Param   map[string]string `placeholder:"KNOB=V" help:"Set a knob of the router; may be repeated."`

	Concurrency int     `short:"n" default:"4" help:"Requests that the closed loop keeps outstanding."`
	Batch       string  `default:"table" placeholder:"POLICY" help:"When a subserver starts a batch: eager (at once), fixed:B0,B1 (with B ready requests), table (with B* for the active count, by the plan), look-ahead (when waiting costs more than it saves) (default: ${default})."`
	Profile     string  `default:"a100-r2r" help:"Cost profile of the paced clock: a built-in name, or a JSON file of one."`
	Speed       float64 `default:"1" help:"Factor on the paced clock; 2 is twice as fast."`
	Seats       int     `default:"32" help:"Most rows of one batch."`
	KVTokens    int     `name:"kv-tokens" default:"16384" help:"Size of each subserver's KV pool, in tokens."`

	Chunk         int           `default:"0" help:"Most tokens that one request feeds in a step, so that a long prompt is fed in chunks beside the others' decode steps; 0 = all."`
	BatchTokens   int           `default:"512" help:"Most tokens that one batch feeds; 0 = no bound."`
	NoPrefixCache bool          `help:"Share no KV among requests with the same beginning."`
	KVOvercommit  float64       `name:"kv-overcommit" default:"1" help:"How much of a KV pool may be promised to requests in the worst case; beyond 1 KV may have to be preempted and recomputed."`
	PeerTimeout   time.Duration `default:"0" help:"A request that another model keeps for longer fails; 0 = never. Time spent paused counts."`

	Seed        uint64   `default:"1" help:"Seed of problems and of sampling."`
	Workload    string   `default:"light" enum:"light,heavy" help:"Generated problems: light (3-6 equations) or heavy (8-12, which the embedded models get wrong)."`
	MaxTokens   int      `default:"160" help:"Most new tokens of a request."`
	Greedy      bool     `help:"Take the most likely token. This is what the embedded models' own settings ask for, and the default unless --temperature is given."`
	Temperature *float64 `help:"Sampling temperature; 0 is greedy."`
	TopK        int      `help:"With --temperature: sample from the K most likely tokens; 0 = all."`
	TopP        float64  `default:"1" help:"With --temperature: sample from the smallest set with this probability."`
	Stop        []string `sep:"none" help:"Stop string; may be repeated."`

	Sessions   string `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
	SessionCap string `default:"2GiB" help:"Size at which recording stops with a notice."`
	NoRecord   bool   `help:"Record no session."`
}

// maxKVTokens is a pool whose books take some 50 MB in every core.
const maxKVTokens = 100_000_000

// check refuses values that cannot be meant, naming the flag.
func (f *clusterFlags) check() error {
	switch {
	case f.Concurrency < 1 || f.Concurrency > live.MaxConcurrency:
		return fmt.Errorf("--concurrency %d is outside 1 to %d", f.Concurrency, live.MaxConcurrency)
	case f.Seats < 1 || f.Seats > 1024:
		return fmt.Errorf("--seats %d is outside 1 to 1024", f.Seats)
	case f.KVTokens < 16:
		return fmt.Errorf("--kv-tokens %d is less than one block of 16", f.KVTokens)
	case f.KVTokens > maxKVTokens:
		return fmt.Errorf("--kv-tokens %d is above %d; no request needs that many, and the books of the pool alone would fill the memory", f.KVTokens, maxKVTokens)
	case f.Chunk < 0:
		return fmt.Errorf("--chunk %d is negative; give 0 for whole prompts", f.Chunk)
	case f.BatchTokens < 0:
		return fmt.Errorf("--batch-tokens %d is negative; give 0 for no bound", f.BatchTokens)
	case !(f.KVOvercommit >= 1 && f.KVOvercommit <= 100):
		return fmt.Errorf("--kv-overcommit %g is outside 1 to 100", f.KVOvercommit)
	case f.PeerTimeout < 0:
		return fmt.Errorf("--peer-timeout %v is negative; give 0 for never", f.PeerTimeout)
	case f.MaxTokens < 1:
		return fmt.Errorf("--max-tokens %d is less than 1", f.MaxTokens)
	case !(f.Speed >= 1.0/64 && f.Speed <= 64):
		return fmt.Errorf("--speed %g is outside 1/64 to 64", f.Speed)
	case f.Temperature != nil && !(*f.Temperature >= 0 && *f.Temperature <= 100):
		return fmt.Errorf("--temperature %g is outside 0 to 100", *f.Temperature)
	case f.Greedy && f.Temperature != nil && *f.Temperature != 0:
		return fmt.Errorf("--greedy and --temperature %g exclude each other", *f.Temperature)
	case f.TopK < 0:
		return fmt.Errorf("--top-k %d is negative", f.TopK)
	case !(f.TopP > 0 && f.TopP <= 1):
		return fmt.Errorf("--top-p %g is outside 0 to 1", f.TopP)
	}
	for _, s := range f.Stop {
		if s == "" {
			return fmt.Errorf("--stop is empty; an empty stop string would end every request at once")
		}
	}
	return nil
}

func (f *clusterFlags) modelNames() ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(f.Models, ",") {
		names = append(names, strings.TrimSpace(name))
	}
	if len(names) < 2 || len(names) > 3 {
		return nil, fmt.Errorf("--models %q is a list of %d; give two or three, small first (%s)", f.Models, len(names), strings.Join(tiny.Names(), ", "))
	}
	return names, nil
}

func (f *clusterFlags) params() (map[string]float64, error) {
	out := map[string]float64{}
	for k, v := range f.Param {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return nil, fmt.Errorf("--param %s=%s: %q is not a number", k, v, v)
		}
		out[k] = x
	}
	return out, nil
}

func (f *clusterFlags) sampling() event.Sampling {
	// 0 would be no truncation at all, not the strictest.
	s := event.Sampling{TopK: f.TopK, TopP: max(float32(f.TopP), math.SmallestNonzeroFloat32), Seed: f.Seed}
	if f.Temperature != nil {
		s.Temperature = float32(*f.Temperature)
	}
	return s
}

func (f *clusterFlags) coreOptions() live.CoreOptions {
	return live.CoreOptions{
		Chunk: f.Chunk, Budget: f.BatchTokens, NoPrefix: f.NoPrefixCache,
		Overcommit: int(math.Round(100 * f.KVOvercommit)), Timeout: f.PeerTimeout,
	}
}

// problems is the endless stream of generated problems of the seed. It goes
// through a key so that no small seed meets one the models were trained on.
func (f *clusterFlags) problems() (workload.Source, error) {
	size := workload.Light
	if f.Workload == "heavy" {
		size = workload.Heavy
	}
	return workload.NewGenerator(rng.Key{Seed: f.Seed, Purpose: rng.Workload}.Uint64(0), size)
}

// profile looks the cost profile up even when the clock is live, so that a name
// misspelt is an error at the start and not at the press of a key.
func (f *clusterFlags) profile(models int) (cost.Profile, error) {
	p, err := readProfile(f.Profile)
	if err == nil {
		p, err = p.For(models)
	}
	if err != nil {
		return cost.Profile{}, fmt.Errorf("--profile: %w", err)
	}
	return p, nil
}

// readProfile finds a built-in profile by name, or reads one from a JSON file.
func readProfile(name string) (cost.Profile, error) {
	if !strings.HasSuffix(name, ".json") {
		return cost.Lookup(name)
	}
	file, err := os.Open(name)
	if err != nil {
		return cost.Profile{}, err
	}
	defer file.Close()
	return cost.Read(file, name)
}

// sessionCap reads a size such as 500MB or 2GiB, in bytes.
func (f *clusterFlags) sessionCap() (int64, error) {
	units := []struct {
		suffix string
		factor float64
	}{
		{"KiB", 1 << 10},
		{"MiB", 1 << 20},
		{"GiB", 1 << 30},
		{"TiB", 1 << 40},
		{"kB", 1e3},
		{"MB", 1e6},
		{"GB", 1e9},
		{"TB", 1e12},
		{"B", 1},
	}
	for _, u := range units {
		num, ok := strings.CutSuffix(f.SessionCap, u.suffix)
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if err != nil || !(x*u.factor >= 1<<16 && x*u.factor < 1<<60) {
			break
		}
		return int64(x * u.factor), nil
	}
	return 0, fmt.Errorf("--session-cap %q is not a size of 64 KiB or more, such as 500MB or 2GiB", f.SessionCap)
}

// readTasks reads a file of tasks; "-" is standard input.
func readTasks(path string) ([]workload.Task, error) {
	if path == "-" {
		return workload.ReadTasks(os.Stdin, "standard input")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--tasks: %w", err)
	}
	defer file.Close()
	return workload.ReadTasks(file, path)
}
