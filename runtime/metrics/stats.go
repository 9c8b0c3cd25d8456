package metrics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// confidence is the level of every interval here.
const confidence = 0.95

// Wilson is the 95 % score interval of a proportion of right out of n
// (E. B. Wilson 1927). It is 0 to 1 when n is 0.
func Wilson(right, n int) (lo, hi float64) {
	if n <= 0 {
		return 0, 1
	}
	z := distuv.UnitNormal.Quantile((1 + confidence) / 2)
	k, m := float64(right), float64(n)
	p := k / m
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	lo, hi = max(0, mid-half), min(1, mid+half)
	if right <= 0 {
		lo = 0
	}
	if right >= n {
		hi = 1
	}
	return lo, hi
}

// Percentile is the smallest sample that at least the share p of all samples do
// not exceed (nearest rank), or 0 without samples. It sorts xs.
func Percentile(xs []float64, p float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return stat.Quantile(p, stat.Empirical, xs, nil)
}

// Welch compares the means of two samples of unequal variance: the difference
// mean(b) - mean(a) and the half-width of its 95 % interval, with Student's t at
// the Welch-Satterthwaite degrees of freedom. Below two samples on a side the
// half-width is +Inf.
func Welch(a, b []float64) (diff, half float64) {
	if len(a) == 0 || len(b) == 0 {
		return 0, math.Inf(1)
	}
	ma, va := stat.MeanVariance(a, nil)
	mb, vb := stat.MeanVariance(b, nil)
	return mb - ma, tHalf(va/float64(len(a)), vb/float64(len(b)), len(a), len(b))
}

// WelchRatio is Welch for the relative change mean(b)/mean(a) - 1, with the
// variance of the quotient to first order (delta method). It is 0 ± Inf when
// mean(a) is not positive.
func WelchRatio(a, b []float64) (rel, half float64) {
	if len(a) == 0 || len(b) == 0 {
		return 0, math.Inf(1)
	}
	ma, va := stat.MeanVariance(a, nil)
	mb, vb := stat.MeanVariance(b, nil)
	if ma <= 0 {
		return 0, math.Inf(1)
	}
	r := mb / ma
	return r - 1, tHalf(r*r*va/float64(len(a))/(ma*ma), vb/float64(len(b))/(ma*ma), len(a), len(b))
}

// MeanInterval is the mean of a sample and the half-width of its 95 % interval, by
// Student's t. Below two values the half-width is +Inf.
func MeanInterval(xs []float64) (mean, half float64) {
	if len(xs) == 0 {
		return 0, math.Inf(1)
	}
	mean, v := stat.MeanVariance(xs, nil)
	if len(xs) < 2 {
		return mean, math.Inf(1)
	}
	return mean, quantileT(len(xs)-1) * math.Sqrt(v/float64(len(xs)))
}

// PairedRatio is by how much b[i] exceeds a[i], the two measured under the same
// circumstances: the geometric mean of b[i]/a[i] and its 95 % interval, by
// Student's t over the logarithms. What differs from pair to pair drops out, so
// the interval may be far narrower than those of a and b. Of one pair the
// interval is 0 to +Inf. Pairs that are not both positive have no ratio; n is how
// many have.
func PairedRatio(a, b []float64) (ratio, lo, hi float64, n int) {
	var logs []float64
	for i := range min(len(a), len(b)) {
		if a[i] > 0 && b[i] > 0 {
			logs = append(logs, math.Log(b[i]/a[i]))
		}
	}
	if len(logs) == 0 {
		return math.NaN(), 0, math.Inf(1), 0
	}
	mean, half := MeanInterval(logs)
	return math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half), len(logs)
}

// quantileT is how many standard errors a 95 % interval extends at df degrees of
// freedom.
func quantileT(df int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: float64(df)}.Quantile((1 + confidence) / 2)
}

// tHalf is the half-width of a 95 % interval of a sum of two independent means
// with variances sa of n samples and sb of m samples.
func tHalf(sa, sb float64, n, m int) float64 {
	if n < 2 || m < 2 {
		return math.Inf(1)
	}
	s := sa + sb
	if s == 0 {
		return 0
	}
	df := s * s / (sa*sa/float64(n-1) + sb*sb/float64(m-1))
	return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile((1+confidence)/2) * math.Sqrt(s)
}
