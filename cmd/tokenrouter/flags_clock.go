package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/runtime/cost"
	"tokenrouter/runtime/live"
)

// clockFlags say what time is, and what a step and a message take of it.
type clockFlags struct {
	Clock      string         `default:"${clock}" enum:"live,paced,emulated,sim" help:"live (as fast as the machine can), paced (at the rhythm of --profile), emulated (paced, with tokens that no model computes), sim (virtual time) (default: ${default})."`
	Tokens     string         `placeholder:"WHO" help:"Who writes tokens: models (those named, else embedded ones), drawn (signals by a law, for models that are not here), or a recorded session: a folder, a name, the beginning of one, or latest (default: models; drawn on the clocks emulated and sim, unless models are named by role or file)."`
	Profile    string         `default:"a100-r2r" help:"Cost profile of the clocks paced, emulated and sim: a built-in name, or a JSON file of one."`
	Speed      *float64       `placeholder:"F" help:"Factor on the clock; 2 is twice as fast. In virtual time 0 is as fast as the machine can (default: 1; in virtual time 0, but 1 on the board)."`
	Latency    *time.Duration `placeholder:"D" help:"Clocks by a profile: time that a message between two subservers takes (default: that of the profile)."`
	Contention []string       `sep:"none" placeholder:"A@B:F" help:"Clock sim: steps of A take F times as long while B runs, such as small@large:1.8, for models that share a device; may be repeated."`
	Jitter     float64        `placeholder:"CV" help:"Clock sim: each step takes a random factor on its time, lognormal with mean 1 and this coefficient of variation, such as 0.05 (default: 0, none)."`
	TP         string         `name:"tp" placeholder:"N,N[:F]" help:"Clocks by a profile: devices that each model is spread over, such as 1,2. Step times are multiplied by 1/N, which is the most that it can give; 2:0.6 gives the factor."`
}

// Who writes tokens, but for a session.
const (
	tokensModels = "models"
	tokensDrawn  = "drawn"
)

// modelled says that models compute the tokens.
func (f *clockFlags) modelled() bool { return f.Tokens == tokensModels }

// recording says that they are repeated from a session.
func (f *clockFlags) recording() bool { return f.Tokens != tokensModels && f.Tokens != tokensDrawn }

// virtual says that the clock is not the wall's.
func (f *clockFlags) virtual() bool { return f.Clock == live.ClockSim }

// maxSimSpeed bounds what may be asked of virtual time: nothing comes near it.
const maxSimSpeed = 1e6

func (f *clockFlags) settleClock() error {
	if f.Tokens == "" {
		f.Tokens = tokensModels
		if f.Clock == live.ClockEmulated || f.virtual() {
			f.Tokens = tokensDrawn
		}
	}
	if f.Speed == nil {
		one := 1.0
		if f.virtual() {
			one = 0
		}
		f.Speed = &one
	}
	speed := *f.Speed
	switch {
	case f.modelled() && f.Clock == live.ClockEmulated:
		return errors.New("--clock emulated is for tokens that no model computes; with --tokens models its rhythm is --clock paced")
	case !f.modelled() && (f.Clock == live.ClockLive || f.Clock == live.ClockPaced):
		return fmt.Errorf("--tokens %s takes no time to compute, and --clock %s goes by that; give --clock emulated, or sim for virtual time", f.Tokens, f.Clock)
	case len(f.Contention) > 0 && !f.virtual():
		return fmt.Errorf("--contention slows steps in virtual time; on the clock %s the machine itself does: give --clock sim, or leave it out", f.Clock)
	case !(f.Jitter >= 0 && f.Jitter <= 10):
		return fmt.Errorf("--jitter %g; a coefficient of variation lies in 0 to 10, such as 0.05", f.Jitter)
	case f.Jitter > 0 && !f.virtual():
		return fmt.Errorf("--jitter varies steps in virtual time; on the clock %s the machine itself does: give --clock sim, or leave it out", f.Clock)
	case f.Latency != nil && f.Clock == live.ClockLive:
		return errors.New("--latency takes the place of that of a cost profile, which the clock live does not go by; give --clock paced, emulated or sim")
	case f.Latency != nil && (*f.Latency < 0 || *f.Latency > time.Minute):
		return fmt.Errorf("--latency %v is outside 0 to 1m", *f.Latency)
	case f.TP != "" && f.Clock == live.ClockLive:
		return errors.New("--tp multiplies the step times of a cost profile, which the clock live does not go by; give --clock paced, emulated or sim")
	case f.virtual() && speed == 0:
	case f.virtual() && !(speed >= 1.0/64 && speed <= maxSimSpeed):
		return fmt.Errorf("--speed %g is outside 1/64 to %g; 0 is as fast as the machine can", speed, maxSimSpeed)
	case !f.virtual() && !(speed >= 1.0/64 && speed <= 64):
		return fmt.Errorf("--speed %g is outside 1/64 to 64", speed)
	}
	return nil
}

// profile looks the cost profile up even when the clock is live, so that a name
// misspelt is an error at the start and not at the press of a key. pick, which
// may be nil, chooses its rows.
func (f *clockFlags) profile(models int, pick func(*cost.Profile) error) (cost.Profile, error) {
	p, err := readProfile(f.Profile)
	if err == nil && pick != nil {
		err = pick(&p)
	}
	if err == nil {
		p, err = p.For(models)
	}
	if err != nil {
		return cost.Profile{}, fmt.Errorf("--profile: %w", err)
	}
	if f.Latency != nil {
		p.LatencyMs = float64(*f.Latency) / float64(time.Millisecond)
	}
	if f.TP == "" {
		return p, nil
	}
	factors, err := tensorParallel(f.TP, &p)
	if err != nil {
		return cost.Profile{}, err
	}
	if p, err = p.Scaled(factors); err != nil {
		return p, fmt.Errorf("--tp: %w", err)
	}
	p.Name += " tp " + f.TP
	return p, nil
}

// tensorParallel reads --tp: what the step times of each model of p are
// multiplied by when it is spread over other than the devices that its figures
// are for.
func tensorParallel(text string, p *cost.Profile) ([]float64, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(p.Rows) {
		return nil, fmt.Errorf("--tp %q is a list of %d for %d models; give one size per model, such as 1,2", text, len(parts), len(p.Rows))
	}
	out := make([]float64, len(parts))
	for i, part := range parts {
		size, factor, given := strings.Cut(strings.TrimSpace(part), ":")
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 || n > 1024 {
			return nil, fmt.Errorf("--tp %q: %q is not a number of devices from 1 to 1024", text, size)
		}
		out[i] = float64(max(p.Rows[i].TP, 1)) / float64(n)
		if !given {
			continue
		}
		if out[i], err = strconv.ParseFloat(factor, 64); err != nil || !(out[i] >= 1.0/1024 && out[i] <= 100) {
			return nil, fmt.Errorf("--tp %q: %q is not a factor of 1/1024 to 100, such as 0.6", text, factor)
		}
	}
	return out, nil
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

// contention is a matrix of by how much a step of one model is slowed while
// another one runs, nil for not at all.
func (f *clockFlags) contention(models int) ([][]float64, error) {
	if len(f.Contention) == 0 {
		return nil, nil
	}
	roles := roleNames(models)
	out := make([][]float64, models)
	for i := range out {
		out[i] = slices.Repeat([]float64{1}, models)
	}
	for _, text := range f.Contention {
		pair, factor, ok := strings.Cut(text, ":")
		who, by, two := strings.Cut(pair, "@")
		i, j := slices.Index(roles, who), slices.Index(roles, by)
		x, err := strconv.ParseFloat(factor, 64)
		switch {
		case !ok || !two || err != nil:
			return nil, fmt.Errorf("--contention %q is not of the form small@large:1.8", text)
		case i < 0 || j < 0 || i == j:
			return nil, fmt.Errorf("--contention %q is not of two of %s", text, strings.Join(roles, ", "))
		case !(x >= 1 && x <= 100) || math.IsNaN(x):
			return nil, fmt.Errorf("--contention %q: a factor lies in 1 to 100", text)
		case out[i][j] != 1:
			return nil, fmt.Errorf("--contention gives %s@%s twice", who, by)
		}
		out[i][j] = x
	}
	return out, nil
}
