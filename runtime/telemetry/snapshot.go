package telemetry

import (
	"encoding/json"
	"time"
)

// Snapshot is the state of the machine at one moment. Rates are means over
// Interval, the time since the sample before.
type Snapshot struct {
	Interval time.Duration `json:"interval_ns"`
	CPU      CPU           `json:"cpu"`
	Memory   Memory        `json:"memory"`
	GPUs     []GPU         `json:"gpus"`
	GPUNote  string        `json:"gpu_note,omitempty"` // why GPUs is empty
}

// CPU is processor use.
type CPU struct {
	Cores   int     `json:"cores"`   // logical processors this process may use
	Process Reading `json:"process"` // processors this process kept busy: 1 = one of them, all the time
	Machine Reading `json:"machine"` // busy share of all processors of the machine, 0 to 1
}

// Memory is memory use in bytes; 0 = not known.
type Memory struct {
	Process uint64     `json:"process"` // of this process, counted as Kind says
	Kind    MemoryKind `json:"kind"`
	Used    uint64     `json:"used"` // of the machine: total less available
	Total   uint64     `json:"total"`
}

// MemoryKind says what Memory.Process counts.
type MemoryKind string

// The kinds of process memory.
const (
	Resident MemoryKind = "rss"        // resident set, everything included
	GoHeap   MemoryKind = "go-runtime" // memory mapped by the Go runtime and not returned
)

// GPU is one NVIDIA GPU.
type GPU struct {
	Index       int     `json:"index"` // NVML's index
	Name        string  `json:"name"`
	Util        Reading `json:"util"`         // share of time a kernel ran, 0 to 1, over the driver's own window (up to 1 s)
	MemoryUsed  uint64  `json:"memory_used"`  // bytes
	MemoryTotal uint64  `json:"memory_total"` // bytes; 0 = not known
	Power       Reading `json:"power_w"`      // watts
}

// Reading is a figure that may be unknown; in JSON an unknown one is null.
type Reading struct {
	Value float64
	Known bool
}

func known(v float64) Reading { return Reading{Value: v, Known: true} }

// MarshalJSON writes the value, or null.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.Known {
		return []byte("null"), nil
	}
	return json.Marshal(r.Value)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Reading) UnmarshalJSON(b []byte) error {
	var v *float64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*r = Reading{}
	if v != nil {
		*r = known(*v)
	}
	return nil
}
