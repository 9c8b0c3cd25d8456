package main

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/live"
)

// clusterFlags say what is hosted and how it runs; board, run, sim and ablate
// share them. The default of --clock is the command's: the tag set:"clock=..."
// where they are embedded.
type clusterFlags struct {
	castFlags

	Concurrency int    `short:"n" default:"4" help:"Requests that the closed loop keeps outstanding."`
	N           *int   `name:"n" hidden:"" help:"--concurrency."`
	Batch       string `default:"table" placeholder:"POLICY" help:"When a subserver starts a batch: eager (at once), fixed:B0,B1 (with B ready requests), table (with B* for the active count, by the plan), look-ahead (when waiting costs more than it saves), lock-step (all wait for each other, as in the R2R loop) (default: ${default})."`
	Resubmit    bool   `help:"Every switch is a new request: KV is given back at a hand-off, and matched and fed again at the return, as by a client of two ordinary servers."`
	MaxActive   int    `placeholder:"N" help:"Most requests admitted at a time; 1 serves one after the other. 0 = no bound."`

	clockFlags
	poolFlags
	loadFlags
	recordFlags

	stateless []bool // subservers that compute a text anew at each visit, for baselines
	ready     *cast  // who writes, where that is known before
	unseen    bool   // nobody looks at predictions
}

// castFlags say who writes, and who decides on that.
type castFlags struct {
	modelFlags
	Router  string            `placeholder:"NAME|FILE" help:"Router: a shipped name, one of --routers, or a Lua file (default: r2r, or chance where --p and the like are given)."`
	Routers string            `default:"routers" placeholder:"DIR" help:"Folder of your own routers; the first edit of a shipped one copies it there (default: ${default})."`
	Param   map[string]string `placeholder:"KNOB=V" help:"Set a knob of the router; may be repeated."`
	headFlags
	chanceFlags
}

// poolFlags size what every subserver has. What is not given depends on who
// writes the tokens: see settle.
type poolFlags struct {
	Seats         int           `default:"32" help:"Most rows of one batch."`
	KVTokens      *int          `name:"kv-tokens" placeholder:"N" help:"Size of each subserver's KV pool, in tokens (default: 16384, less where memory is short of it; with drawn tokens that of the cost profile, else 262144)."`
	Chunk         int           `default:"0" help:"Most tokens that one request feeds in a step, so that a long prompt is fed in chunks beside the others' decode steps; 0 = all."`
	BatchTokens   *int          `placeholder:"N" help:"Most tokens that one batch feeds; 0 = no bound (default: 512; 128 with models from disk, 8192 with drawn tokens)."`
	NoPrefixCache bool          `help:"Share no KV among requests with the same beginning."`
	KVOvercommit  float64       `name:"kv-overcommit" default:"1" help:"How much of a KV pool may be promised to requests in the worst case; beyond 1 KV may have to be preempted and recomputed."`
	PeerTimeout   time.Duration `default:"0" help:"A request that another model keeps for longer fails; 0 = never. Time spent paused counts."`
}

// Sizes where none is given. Drawn tokens have no weights and no memory behind
// them: their pool holds what the longest workload needs, their batches feed as
// much as common servers let theirs. Models from disk think at greater length
// than the embedded ones, and take so long for a token that the others' decode
// steps should not wait for more than a short prompt.
const (
	modelKVTokens = 16_384
	drawnKVTokens = 1 << 18
	modelBudget   = 512
	ownBudget     = 128
	drawnBudget   = 8192
	modelMaxNew   = 160
	ownMaxNew     = 1024
	drawnMaxNew   = 8192
	drawnContext  = 1 << 17
)

// maxKVTokens is a pool whose books take some 50 MB in every core.
const maxKVTokens = 100_000_000

// settle fills in what was not given and refuses values that cannot be meant, or
// not together, naming the flag. It may be called again.
func (f *clusterFlags) settle() error {
	if f.N != nil {
		f.Concurrency, f.N = *f.N, nil
	}
	if f.named() && f.Tokens == "" {
		f.Tokens = tokensModels // nothing else can write as they do
	}
	if err := f.settleClock(); err != nil {
		return err
	}
	if err := f.settleRouter(f); err != nil {
		return err
	}
	if f.modelled() {
		f.settlePair(f.Workload)
		if err := f.settleModels(); err != nil {
			return err
		}
	} else if f.Models == "" && f.Tokens == tokensDrawn {
		f.Models = strings.Join(roleNames(f.models), ",")
	}
	budget, most := drawnBudget, drawnMaxNew
	switch {
	case f.modelled() && f.own():
		budget, most = ownBudget, ownMaxNew
	case f.modelled():
		budget, most = modelBudget, modelMaxNew
		if f.KVTokens == nil { // of models from disk memory has a say in it
			kv := modelKVTokens
			f.KVTokens = &kv
		}
	}
	if f.BatchTokens == nil {
		f.BatchTokens = &budget
	}
	if f.maxNew = most; f.MaxTokens != nil {
		f.maxNew = *f.MaxTokens
	}
	return cmp.Or(f.checkPool(), f.checkLoad())
}

func (f *clusterFlags) checkPool() error {
	switch kv := f.KVTokens; {
	case f.Concurrency < 1 || f.Concurrency > live.MaxConcurrency:
		return fmt.Errorf("--concurrency %d is outside 1 to %d", f.Concurrency, live.MaxConcurrency)
	case f.MaxActive < 0:
		return fmt.Errorf("--max-active %d is negative; give 0 for no bound", f.MaxActive)
	case f.Seats < 1 || f.Seats > 1024:
		return fmt.Errorf("--seats %d is outside 1 to 1024", f.Seats)
	case kv != nil && *kv < 16:
		return fmt.Errorf("--kv-tokens %d is less than one block of 16", *kv)
	case kv != nil && *kv > maxKVTokens:
		return fmt.Errorf("--kv-tokens %d is above %d; no request needs that many, and the books of the pool alone would fill the memory", *kv, maxKVTokens)
	case f.Chunk < 0:
		return fmt.Errorf("--chunk %d is negative; give 0 for whole prompts", f.Chunk)
	case *f.BatchTokens < 0:
		return fmt.Errorf("--batch-tokens %d is negative; give 0 for no bound", *f.BatchTokens)
	case !(f.KVOvercommit >= 1 && f.KVOvercommit <= 100):
		return fmt.Errorf("--kv-overcommit %g is outside 1 to 100", f.KVOvercommit)
	case f.PeerTimeout < 0:
		return fmt.Errorf("--peer-timeout %v is negative; give 0 for never", f.PeerTimeout)
	}
	return nil
}

// count refuses another number of models than a flag of the routing is of.
func (c *chanceFlags) count(n int, flag string) error {
	if c.models > 0 && c.models != n {
		return fmt.Errorf("%s is of %d models, %s names %d", c.given()[0], c.models, flag, n)
	}
	return nil
}

// params are the knobs that flags set.
func (f *clusterFlags) params() (map[string]float64, error) {
	out := map[string]float64{}
	for k, v := range f.Param {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return nil, fmt.Errorf("--param %s=%s: %q is not a number", k, v, v)
		}
		out[k] = x
	}
	for k, v := range f.knobs {
		if _, twice := f.Param[k]; twice {
			return nil, fmt.Errorf("--param %s and %s set the same knob; give one", k, strings.Join(f.given(), ", "))
		}
		out[k] = v
	}
	return out, nil
}

func (f *clusterFlags) coreOptions() live.CoreOptions {
	return live.CoreOptions{
		Chunk: f.Chunk, Budget: *f.BatchTokens, NoPrefix: f.NoPrefixCache,
		Overcommit: int(math.Round(100 * f.KVOvercommit)), Timeout: f.PeerTimeout,
		MaxActive: f.MaxActive, Resubmit: f.Resubmit, Stateless: f.stateless,
	}
}

// roleNames names n models by what they are to each other.
func roleNames(n int) []string {
	out := make([]string, max(n, 2))
	for i := range out {
		out[i] = event.Role(event.Peer(i), len(out))
	}
	return out
}

// recordFlags say where a session goes.
type recordFlags struct {
	Sessions   string `placeholder:"DIR" help:"Where sessions are recorded (default: the user's state folder)."`
	SessionCap string `default:"2GiB" help:"Size at which recording stops with a notice."`
	NoRecord   bool   `help:"Record no session."`
}

// sessionCap reads a size such as 500MB or 2GiB, in bytes.
func (f *recordFlags) sessionCap() (int64, error) {
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
