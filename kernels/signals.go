package kernels

import (
	"errors"
	"fmt"
	"math"
)

// TopN is how many of the most likely tokens Signals lists.
const TopN = 5

// TokenProb is a token and its log-probability in nats.
type TokenProb struct {
	ID      int32
	Logprob float32
}

// Signals describe a logits row as a router sees it: raw logits at temperature
// 1 over all rows of the vocabulary, before penalties and truncation.
type Signals struct {
	Entropy     float32     // nats
	EntropyNorm float32     // Entropy / ln V, 0..1; 0 for V = 1
	Top1, Top2  float32     // probabilities of the two most likely tokens
	LogSumExp   float32     // nats
	TopK        []TokenProb // the TopN most likely (fewer if V is smaller), falling; ties: lower id first
}

// Measure fills s from one row; the storage of s.TopK is reused. With
// d = logit - max, S = sum of exp(d) and T = sum of d*exp(d), all in float64:
// LogSumExp = max + ln S and Entropy = ln S - T/S. A logit of -Inf is a token
// that cannot be; NaN, +Inf, or no finite logit at all is an error.
func Measure(s *Signals, logits []float32) error {
	top, err := topN(s.TopK[:0], logits)
	if err != nil {
		return err
	}
	peak := float64(top[0].Logprob)
	var sum, weighted float64
	for _, l := range logits {
		d := float64(l) - peak
		if d < expMin {
			continue
		}
		e := exp(d)
		sum += e
		weighted += float64(d * e)
	}
	return s.Derive(top, sum, weighted, len(logits))
}

// Derive fills s from what was summed over a row of vocab logits elsewhere: sum
// and weighted are S and T of Measure. top are the TopN largest logits, falling,
// with the logit in place of the log-probability; s keeps the slice. No finite
// logit is an error.
func (s *Signals) Derive(top []TokenProb, sum, weighted float64, vocab int) error {
	switch {
	case len(top) == 0:
		return errNoLogits
	case math.IsInf(float64(top[0].Logprob), -1):
		return errNoFinite
	}
	peak := float64(top[0].Logprob)
	logSum := ln(sum)
	h := max(0, logSum-weighted/sum)
	s.Entropy = float32(h)
	s.EntropyNorm = 0
	if vocab > 1 {
		s.EntropyNorm = float32(h / ln(float64(vocab)))
	}
	s.LogSumExp = float32(peak + logSum)
	s.Top1 = float32(1 / sum)
	s.Top2 = 0
	if len(top) > 1 {
		s.Top2 = float32(exp(float64(top[1].Logprob)-peak) / sum)
	}
	for i := range top {
		top[i].Logprob = float32(float64(top[i].Logprob) - peak - logSum)
	}
	s.TopK = top
	return nil
}

// topN appends the TopN largest logits, falling, to out.
func topN(out []TokenProb, logits []float32) ([]TokenProb, error) {
	if len(logits) == 0 {
		return nil, errNoLogits
	}
	floor := float32(math.Inf(-1)) // what a newcomer must exceed once out is full
	for i, l := range logits {
		if l <= floor && len(out) == TopN {
			continue
		}
		if l != l || l > math.MaxFloat32 {
			return nil, BadLogit(i, l)
		}
		if len(out) < TopN {
			out = append(out, TokenProb{})
		}
		j := len(out) - 1
		for ; j > 0 && out[j-1].Logprob < l; j-- {
			out[j] = out[j-1]
		}
		out[j] = TokenProb{ID: int32(i), Logprob: l}
		floor = out[len(out)-1].Logprob
	}
	return out, nil
}

// Argmax is the lowest id among the largest logits, with the errors of Measure.
func Argmax(logits []float32) (int32, error) {
	if len(logits) == 0 {
		return 0, errNoLogits
	}
	best, top := int32(-1), float32(math.Inf(-1))
	for i, l := range logits {
		if l <= top {
			continue
		}
		if l != l || l > math.MaxFloat32 {
			return 0, BadLogit(i, l)
		}
		best, top = int32(i), l
	}
	if best < 0 {
		return 0, errNoFinite
	}
	return best, nil
}

var (
	errNoLogits = errors.New("kernels: the logits row is empty: ask the model for logits of this row")
	errNoFinite = errors.New("kernels: every logit is -Inf: at least one token must stay possible")
)

// BadLogit is the error of Measure for a logit that is NaN or +Inf.
func BadLogit(i int, l float32) error {
	return fmt.Errorf("kernels: logit %d is %v: the weights or the context are damaged, check the model's file", i, l)
}
