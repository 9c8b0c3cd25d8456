package plan

import "math"

// What stays within these bounds gives the same table, or one as good: shares and
// committed tokens absolute, step times relative.
const (
	shareMoved = 0.02
	stepMoved  = 0.03
)

// Moved says whether what was measured since has left a plan made for old behind.
// Step times are compared for a batch of all N.
func (s *Spec) Moved(old *Spec) bool {
	if s.N != old.N || len(s.P) != len(old.P) || (s.K == nil) != (old.K == nil) {
		return true
	}
	for i := range s.P {
		now, before := s.Step[i].Of(s.N), old.Step[i].Of(s.N)
		if math.Abs(now-before) > stepMoved*before || apart(s.P[i], old.P[i]) {
			return true
		}
		if s.K != nil && apart(s.K[i], old.K[i]) {
			return true
		}
		if s.law(i).moved(old.law(i)) {
			return true
		}
	}
	return false
}

func apart(a, b []float64) bool {
	for j := range a {
		if math.Abs(a[j]-b[j]) > shareMoved {
			return true
		}
	}
	return false
}

// law is the send law of model i, nil for the geometric one.
func (s *Spec) law(i int) *Phases {
	if s.Send == nil {
		return nil
	}
	return s.Send[i]
}

// moved compares laws by the mean of their steps: the shape of one that is
// measured trembles with every send.
func (f *Phases) moved(old *Phases) bool {
	if f == nil || old == nil {
		return f != old
	}
	now, before := f.moments().mean, old.moments().mean
	return math.Abs(now-before) > stepMoved*before
}

// moments are the expected number of steps and their squared coefficient of
// variation.
type moments struct{ mean, cv2 float64 }

// moments counts up to a thousand steps.
func (f *Phases) moments() moments {
	at := append([]float64(nil), f.Start...)
	mean, square := 0.0, 0.0
	for k := range 1000 {
		left := 0.0 // the chance to make more than k steps
		for _, p := range at {
			left += p
		}
		if left < 1e-9 {
			break
		}
		mean += left
		square += float64(2*k+1) * left
		next := make([]float64, len(at))
		for k, p := range at {
			for l, q := range f.Next[k] {
				next[l] += p * q
			}
		}
		at = next
	}
	return moments{mean: mean, cv2: square/(mean*mean) - 1}
}
