package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/frontier"
	"tokenrouter/runtime/live"
	"tokenrouter/runtime/workload"
)

// sweepKind is in the first line of a file of points.
const sweepKind = "sweep"

// sweepAbout says what points are of: everything that they depend on but router and
// knobs.
type sweepAbout struct {
	Program     string        `json:"program"`
	Models      []string      `json:"models"`
	Parameters  []int64       `json:"parameters"`
	Held        []string      `json:"held"` // hash of the weights, and formats
	HeadWeights string        `json:"head_weights"`
	Clock       string        `json:"clock"`
	Profile     *cost.Profile `json:"profile"` // null on the clock live
	Contention  []string      `json:"contention"`
	Jitter      float64       `json:"jitter"`
	Speed       float64       `json:"speed"`
	Workload    string        `json:"workload"` // or the hash of a file of tasks
	Check       string        `json:"check"`    // hash of the file that judges answers, "" without one
	Requests    int           `json:"requests"`
	Seed        uint64        `json:"seed"`
	Arrivals    string        `json:"arrivals"`
	Concurrency int           `json:"concurrency"`
	Batch       string        `json:"batch"`
	Resubmit    bool          `json:"resubmit"`
	MaxActive   int           `json:"max_active"`
	MaxTokens   int           `json:"max_tokens"`
	Temperature float64       `json:"temperature"`
	TopK        int           `json:"top_k"`
	TopP        float64       `json:"top_p"`
	Stops       []string      `json:"stops"`
	Seats       int           `json:"seats"`
	KVTokens    int           `json:"kv_tokens"`
	Chunk       int           `json:"chunk"`
	BatchTokens int           `json:"batch_tokens"`
	NoPrefix    bool          `json:"no_prefix_cache"`
	Overcommit  float64       `json:"kv_overcommit"`
	Kernels     string        `json:"kernels"` // level of the arithmetic and threads, on the clock live
}

func (s *sweep) describe(c *cluster) (sweepAbout, error) {
	f := c.flags
	sampling := f.sampling()
	out := sweepAbout{
		Program: "tokenrouter " + version(), Models: c.names(), HeadWeights: f.HeadWeights,
		Clock: live.ClockText(c.runtime.Status().Clock, c.runtime.Status().Profile), Contention: append([]string{}, f.Contention...), Jitter: f.Jitter, Speed: *f.Speed,
		Workload: f.Workload, Requests: s.limit, Seed: f.Seed, Arrivals: f.Arrivals,
		Concurrency: f.Concurrency, Batch: f.Batch, Resubmit: f.Resubmit, MaxActive: f.MaxActive,
		MaxTokens: f.maxNew, Temperature: float64(sampling.Temperature), TopK: f.TopK, TopP: f.TopP, Stops: append([]string{}, f.Stop...),
		Seats: f.Seats, KVTokens: *f.KVTokens, Chunk: f.Chunk, BatchTokens: *f.BatchTokens, NoPrefix: f.NoPrefixCache, Overcommit: f.KVOvercommit,
	}
	for _, m := range c.cast.models {
		out.Parameters = append(out.Parameters, m.Params)
		out.Held = append(out.Held, m.Hash[:12]+" "+heldText(m.Weights, m.KV))
	}
	if s.tasks != nil {
		hash, err := tasksHash(s.tasks)
		if err != nil {
			return out, err
		}
		out.Workload = tasksMark + hash
	}
	if f.Check != "" {
		text, err := os.ReadFile(f.Check)
		if err != nil {
			return out, fmt.Errorf("--check: %w", err)
		}
		sum := sha256.Sum256(text)
		out.Check = hex.EncodeToString(sum[:6])
	}
	if f.Clock != live.ClockLive {
		out.Profile = &c.profile
	} else {
		out.Kernels = fmt.Sprintf("%s, %d threads", cpu.Current(), f.threads())
	}
	return out, nil
}

// tasksMark begins the workload of a file of tasks.
const tasksMark = "tasks "

// tasksHash is of the tasks and of what judges their answers.
func tasksHash(tasks []workload.Task) (string, error) {
	h := sha256.New()
	e := json.NewEncoder(h)
	if err := e.Encode(tasks); err != nil {
		return "", err
	}
	for i := range tasks {
		if c := tasks[i].Check; c != nil {
			fmt.Fprintln(h, i, c)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6]), nil
}

// sameProblems says whether two sweeps are of problems in common. Those of a file do
// not depend on the seed.
func (a *sweepAbout) sameProblems(b *sweepAbout) bool {
	return a.Workload == b.Workload && (a.Seed == b.Seed || strings.HasPrefix(a.Workload, tasksMark))
}

// params are the sizes of the models.
func (a *sweepAbout) params() (out []float64) {
	for _, n := range a.Parameters {
		out = append(out, float64(n))
	}
	return out
}

// sweepFile is a file of points that was read.
type sweepFile struct {
	name  string
	about sweepAbout
	raw   []byte // about
	runs  []frontier.Run
	torn  bool
}

// readSweep reads one whole, but for a last line that is still being written or was
// cut short.
func readSweep(name string) (*sweepFile, error) {
	if err := plain(name); err != nil {
		return nil, fmt.Errorf("%w of a sweep", err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	form := keptForm{sweepKind, keptVersion}
	out := &sweepFile{name: name}
	whole, err := form.lines(name, data, func(n int, line []byte) error {
		if n == 1 {
			raw, err := form.head(name, line)
			if err == nil {
				out.raw = raw
				err = json.Unmarshal(raw, &out.about)
			}
			return err
		}
		var r frontier.Run
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		if r.Series == "" {
			return fmt.Errorf("%s, line %d is no point of a sweep; take it out", name, n)
		}
		out.runs = append(out.runs, r)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case whole == 0:
		return nil, form.strange(name)
	case len(out.runs) == 0:
		return nil, fmt.Errorf("%s has no points yet", name)
	}
	if out.torn = whole < len(data); out.torn {
		fmt.Fprintf(os.Stderr, "tokenrouter: the last line of %s is cut short and left out\n", name)
	}
	return out, nil
}

// unlike names a setting other than those in which the two may differ, "" if there
// is none.
func (f *sweepFile) unlike(g *sweepFile, may ...string) (string, error) {
	var a, b map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(f.raw, &a), json.Unmarshal(g.raw, &b)); err != nil {
		return "", err
	}
	for _, key := range may {
		a[key], b[key] = nil, nil
	}
	was, err1 := json.Marshal(a)
	is, err2 := json.Marshal(b)
	if err := errors.Join(err1, err2); err != nil || string(was) == string(is) {
		return "", err
	}
	return differs(was, is), nil
}
