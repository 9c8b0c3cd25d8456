package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"tokenrouter/kernels/cpu"
	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/event"
	"tokenrouter/sessions/format"
)

// ManifestVersion is the manifest format that this program writes; it reads all
// from version 1 on. Version 2 added Core, version 3 the
// policy lock-step, Block, MaxActive and Resubmit of Core, Cost, Contention, Jitter,
// Tokens and the Arrivals of a workload, version 4 Path, Weights and KV of a
// model, and Kernels and Threads of a machine, version 5 Heads.
const ManifestVersion = 5

// Manifest says what ran. It is written when a session begins and once more
// when it ends in order.
type Manifest struct {
	Format      int                `json:"format"`      // set by Create
	TapeFormat  int                `json:"tape_format"` // set by Create
	Program     string             `json:"program"`     // name and version
	StartedAt   time.Time          `json:"started_at"`
	Models      []Model            `json:"models"`          // in the order of the subservers
	Router      Router             `json:"router"`          // with which the run began
	Params      map[string]float64 `json:"params"`          // its knobs at the beginning
	Heads       []Head             `json:"heads,omitempty"` // trained heads that were used, in the order of their names
	Seed        uint64             `json:"seed"`
	Policy      Policy             `json:"policy"`
	Clock       string             `json:"clock"`                // live, paced, emulated, sim
	Profile     string             `json:"profile,omitempty"`    // cost profile of a clock that goes by one
	Cost        *cost.Profile      `json:"cost,omitempty"`       // its step times, as they were in force
	Contention  []string           `json:"contention,omitempty"` // in virtual time: small@large:1.8
	Jitter      float64            `json:"jitter,omitempty"`     // likewise: coefficient of variation of each step's time
	Tokens      string             `json:"tokens,omitempty"`     // who wrote: models (also if absent), drawn, or the session that was repeated
	Speed       float64            `json:"speed,omitempty"`      // factor on the clock, 0 = 1
	Concurrency int                `json:"concurrency"`
	Seats       int                `json:"seats"`     // most rows of a batch, of every subserver
	KVTokens    int                `json:"kv_tokens"` // KV pool of every subserver
	Core        Core               `json:"core"`
	Workload    Workload           `json:"workload"`
	Sampling    Sampling           `json:"sampling"`
	Machine     Machine            `json:"machine"`
	Closed      *Closed            `json:"closed,omitempty"` // absent while open and after a kill
}

// Model is one subserver's model. Paths and formats are those of models that
// compute: drawn tokens have none, nor has the path of an embedded model.
type Model struct {
	Role    string `json:"role"`
	Name    string `json:"name"`
	Hash    string `json:"hash"` // of the weights, as they were stored
	Params  int64  `json:"params"`
	Vocab   string `json:"vocab"`             // hash of the vocabulary
	Path    string `json:"path,omitempty"`    // file or folder of the checkpoint
	Weights string `json:"weights,omitempty"` // format they were held in: f32, f16, bf16, q8, q4
	KV      string `json:"kv,omitempty"`      // likewise of keys and values: f16, f32
}

// Router is a router file as it was. Text is also in routers/<hash>.lua.
type Router struct {
	File string `json:"file"` // base name
	Path string `json:"path,omitempty"`
	Hash string `json:"hash"`
	Text string `json:"text"`
}

// Policy is the batching policy at the beginning.
type Policy struct {
	Kind string `json:"kind"` // eager, fixed, table, look-ahead, lock-step
	B    []int  `json:"b,omitempty"`
	W    int64  `json:"w_ns,omitempty"`
}

// PolicyOf puts a core's policy into words.
func PolicyOf(p *event.Policy) Policy {
	return Policy{Kind: p.Kind.String(), B: append([]int(nil), p.B...), W: p.W}
}

// Core is how every core was set up, as sched.Config has it. Sessions of before
// version 2 had no prefix cache, chunks or time-outs.
type Core struct {
	Block      int   `json:"block,omitempty"`  // tokens of a KV block, 0: 16
	Chunk      int   `json:"chunk,omitempty"`  // tokens
	Budget     int   `json:"budget,omitempty"` // tokens
	NoPrefix   bool  `json:"no_prefix,omitempty"`
	Overcommit int   `json:"overcommit,omitempty"` // %
	MaxActive  int   `json:"max_active,omitempty"` // requests
	Resubmit   bool  `json:"resubmit,omitempty"`
	Timeout    int64 `json:"timeout_ns,omitempty"`
}

// Workload is where the requests came from.
type Workload struct {
	Source    string `json:"source"` // light, heavy, multi-turn (before version 3: problems), tasks
	File      string `json:"file,omitempty"`
	Requests  int    `json:"requests,omitempty"` // 0 = endless
	MaxTokens int    `json:"max_tokens,omitempty"`
	Arrivals  string `json:"arrivals,omitempty"` // of an open loop, as --arrivals has it
}

// Sampling is how tokens were drawn and what ended a text; temperature 0 is
// greedy.
type Sampling struct {
	Temperature float64  `json:"temperature"`
	TopK        int      `json:"top_k,omitempty"`
	TopP        float64  `json:"top_p,omitempty"`
	Stops       []string `json:"stops,omitempty"`
}

// Machine is where it ran.
type Machine struct {
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	CPUs     int    `json:"cpus"`
	CPUModel string `json:"cpu_model,omitempty"`
	Go       string `json:"go"`
	Kernels  string `json:"kernels,omitempty"` // level of the arithmetic: go, avx2, avx512
	Threads  int    `json:"threads,omitempty"` // that computed, of all subservers together
}

// ThisMachine describes the machine of this process; the threads are for the
// caller to say.
func ThisMachine() Machine {
	return Machine{
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		CPUs:     runtime.NumCPU(),
		CPUModel: cpuModel(),
		Go:       runtime.Version(),
		Kernels:  cpu.Current().String(),
	}
}

// Closed is the end of a session that was closed in order.
type Closed struct {
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	Records  uint64    `json:"records"`           // on disk
	Bytes    int64     `json:"bytes"`             // of the tape
	Duration int64     `json:"duration_ns"`       // of session time, to the last record
	LeftOut  uint64    `json:"left_out"`          // records that could not be stored
	Stopped  string    `json:"stopped,omitempty"` // why recording ended before the run
}

const maxManifest = 64 << 20

func readManifest(path string, o format.Options) (Manifest, error) {
	var m Manifest
	b, err := readLimited(path, maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return m, fmt.Errorf("%s is no session: it holds no %s", filepath.Dir(path), filepath.Base(path))
	}
	if err != nil {
		return m, fmt.Errorf("the manifest cannot be read: %w", err)
	}
	var v struct {
		Format *int `json:"format"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return m, fmt.Errorf("the manifest %s is damaged: %w", path, err)
	}
	if v.Format == nil || *v.Format < 1 || *v.Format > ManifestVersion {
		have := 0
		if v.Format != nil {
			have = *v.Format
		}
		return m, fmt.Errorf("%s: %w", path, &format.VersionError{What: "manifest", Have: have, Want: ManifestVersion})
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if !o.Lenient {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(&m); err != nil {
		return m, fmt.Errorf("the manifest %s is not of this format: %w", path, err)
	}
	return m, nil
}

func (m *Manifest) write(dir string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a router's text stays readable
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, manifestName), b.Bytes())
}

// writeFile replaces a file as a whole: a reader sees the old or the new one.
func writeFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(f.Name())))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return b, nil
}
