package plan

import "math"

// ClosedForm is the throughput in tokens per second of the cases of two models
// that need no chain; ok is false for any other.
//
//   - N = 1: the request alternates; P may be any with P[1][0] > 0.
//   - B = (1, N), P[1] = [1, 0]: the large model waits until every request has
//     come. For one token per small step N/p / (t0 E[max of N Geom(p)] + t1).
//   - B = (N, 1), P[1] = [1, 0]: lock-step, N / (t0 + t1 (1-(1-p)^N)).
//
// All for flat step times (§2.3); times that grow with the batch and any K
// are taken into account.
func ClosedForm(s *Spec) (tokensPerS float64, ok bool) {
	if s.Check() != nil || len(s.P) != 2 || s.Send != nil || s.most(0) < s.N || s.most(1) < s.N {
		return 0, false
	}
	t, tick, err := s.ticks()
	if err != nil {
		return 0, false
	}
	n, p := s.N, s.P[0][1]
	gain := func(i int) float64 { return s.P[i][0]*s.committed(i, 0) + s.P[i][1]*s.committed(i, 1) }
	b0, b1 := s.threshold(0), s.threshold(1)
	back := s.P[1][0] == 1
	// Per cycle: steps of the small and the large model in rows, and ticks.
	var small, large, ticks float64
	switch {
	case n == 1 && b0 == 1 && b1 == 1 && s.P[1][0] > 0:
		small, large = s.P[1][0], p
		ticks = small*float64(t[0][1]) + large*float64(t[1][1])
	case back && b0 == 1 && b1 == n && p > 0:
		// From a small batch of b rows with none gone to the large model the next
		// is alike, so visits[b], its expected number in a cycle, is what comes
		// from larger batches times 1 / (1 - (1-p)^b).
		visits := make([]float64, n+1)
		visits[n] = 1
		for b := n; b >= 1; b-- {
			visits[b] /= -math.Expm1(float64(b) * math.Log1p(-p))
			for gone := 1; gone < b; gone++ {
				visits[b-gone] += visits[b] * binomialChance(b, gone, p)
			}
			ticks += visits[b] * float64(t[0][b])
		}
		small, large = float64(n)/p, float64(n)
		ticks += float64(t[1][n])
	case back && b0 == n && b1 == 1:
		small, large = float64(n), float64(n)*p
		ticks = float64(t[0][n])
		for k := 1; k <= n; k++ {
			ticks += binomialChance(n, k, p) * float64(t[1][k])
		}
	default:
		return 0, false
	}
	return (small*gain(0) + large*gain(1)) / (ticks * tick) * 1000, true
}

// binomialChance is the probability of k successes in n tries.
func binomialChance(n, k int, p float64) float64 {
	if p == 1 {
		if k == n {
			return 1
		}
		return 0
	}
	return math.Exp(logChoose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// Explain is the threshold of the large model that a look ahead of one small
// step gives: hold q waiting requests while what they lose by waiting, q t0, is
// less than what those at the small model save by sharing the batch,
// p (N-q) (t1-t0). For flat step times that is ceil(N x / (1+x)) with
// x = p (t1/t0 - 1) (§6.3). It explains B*, and is a place to start a
// search; in 210 cases the throughput there was 0.9 % below the best on average.
// It is 0 where the rule does not apply: not two models, or P[1] not [1, 0].
func Explain(s *Spec) int {
	if s.Check() != nil || len(s.P) != 2 || s.P[1][0] != 1 {
		return 0
	}
	p := s.P[0][1]
	for q := 1; q < s.N; q++ {
		t0, t1 := s.Step[0].Of(min(s.N-q, s.most(0))), s.Step[1].Of(min(q, s.most(1)))
		if float64(q)*t0 >= p*float64(s.N-q)*(t1-t0) {
			return q
		}
	}
	return s.N
}
