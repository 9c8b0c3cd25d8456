package emulated

import (
	_ "embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
)

//go:embed law.csv
var lawText string

// topN is how many of the most likely tokens an Output lists.
const topN = 5

// The rows of a table are quantiles by entropy: lowRows of the part below
// highFrom, highRows of the rest, which is where routers' thresholds lie.
const (
	lowRows, highRows = 128, 256
	highFrom          = 0.9
)

// signals is what a model said at one position of the measurement.
type signals struct {
	entropy, logsumexp float32
	logprob            [topN]float32 // falling
	top1, top2         float32
}

// table is the law of one model's signals. With probability tie a position is
// as hard for it as for the small model, else on its own; that makes tie the
// rank correlation of both.
type table struct {
	tie  float64
	rows []signals
}

// at is the row at quantile u, 0 <= u < 1.
func (t *table) at(u float64) *signals {
	if u < highFrom {
		return &t.rows[int(u/highFrom*lowRows)]
	}
	return &t.rows[lowRows+min(int((u-highFrom)/(1-highFrom)*highRows), highRows-1)]
}

// tables are the measured laws of small, middle and large.
var tables = sync.OnceValues(func() ([]table, error) { return parseTables(lawText) })

func parseTables(text string) ([]table, error) {
	var out []table
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, ",")
		var err error
		if f[0] == "model" && len(f) == 3 {
			t := table{}
			t.tie, err = strconv.ParseFloat(f[2], 64)
			out = append(out, t)
		} else if len(out) > 0 && len(f) == 2+topN {
			t := &out[len(out)-1]
			t.rows = append(t.rows, signals{})
			err = t.rows[len(t.rows)-1].parse(f)
		} else {
			err = fmt.Errorf("%d fields", len(f))
		}
		if err != nil {
			return nil, fmt.Errorf("law.csv: %q: %w", line, err)
		}
	}
	for i := range out {
		if n := len(out[i].rows); n != lowRows+highRows {
			return nil, fmt.Errorf("law.csv: model %d has %d rows instead of %d", i, n, lowRows+highRows)
		}
	}
	if len(out) != 3 {
		return nil, fmt.Errorf("law.csv: %d models instead of small, middle, large", len(out))
	}
	return out, nil
}

func (s *signals) parse(fields []string) error {
	var v [2 + topN]float32
	for i, f := range fields {
		x, err := strconv.ParseFloat(f, 32)
		if err != nil {
			return err
		}
		v[i] = float32(x)
	}
	s.entropy, s.logsumexp = v[0], v[1]
	copy(s.logprob[:], v[2:])
	s.top1, s.top2 = prob(s.logprob[0]), prob(s.logprob[1])
	return nil
}

func prob(logprob float32) float32 { return float32(math.Exp(float64(logprob))) }
