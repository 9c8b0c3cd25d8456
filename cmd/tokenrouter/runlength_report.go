package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/runtime/event"
	"tokenrouter/runtime/metrics"
	"tokenrouter/runtime/plan"
	"tokenrouter/sessions/store"
)

// runlengths is the stable form of runlength --json.
type runlengths struct {
	Session    string             `json:"session"` // "" of one that was made for this
	Router     string             `json:"router"`
	Params     map[string]float64 `json:"params"`
	Models     []string           `json:"models"`
	Requests   int                `json:"requests"`
	Routing    [][]float64        `json:"routing"`   // P, over the whole session
	Committed  [][]float64        `json:"committed"` // K
	Subservers []runsJSON         `json:"subservers"`
	DrawnShare float64            `json:"drawn_share"` // of the answers in the runs, those that the recording does not have
	Plans      []lengthPlan       `json:"plans"`

	manifest *store.Manifest
	est      metrics.Estimate
	ids      []event.ReqID
}

// runsJSON are the runs of steps at one subserver.
type runsJSON struct {
	Role    string    `json:"role"`
	Steps   int       `json:"steps"`
	Runs    int       `json:"runs"` // that ended with a send
	Mean    float64   `json:"mean"`
	CV2     float64   `json:"cv2"`
	Geom    float64   `json:"cv2_geometric"`
	Tested  bool      `json:"tested"`
	Chi2    float64   `json:"chi2"`
	DF      int       `json:"df"`
	PValue  float64   `json:"p"`
	Far     bool      `json:"far"`              // refused at 1 %
	Next    float64   `json:"next_correlation"` // of a run with the next one of its request
	Pairs   int       `json:"pairs"`
	Law     string    `json:"law"` // chosen by BIC
	LawMean float64   `json:"law_mean"`
	LawCV2  float64   `json:"law_cv2"`
	LawP    float64   `json:"law_p"` // of the same test against the law; 1 where it could not be tested
	LawBIC  float64   `json:"law_bic"`
	GeomBIC float64   `json:"geometric_bic"`
	Start   []float64 `json:"start,omitempty"` // phases, where the law is not geometric

	Phases [][]float64 `json:"phases,omitempty"`
	Bins   []runBin    `json:"histogram"`

	Small     string  `json:"small_law"` // geometric, or the best of 2 to 4 phases
	SmallMean float64 `json:"small_mean"`
	SmallCV2  float64 `json:"small_cv2"`
	SmallP    float64 `json:"small_p"`
	SmallBIC  float64 `json:"small_bic"`

	law     plan.Law
	small   plan.Law
	hazards []float64 // share of k-th steps that were sent on, the last one of all beyond
}

// runBin is one bar.
type runBin struct {
	From      int     `json:"from"`
	To        int     `json:"to"`
	Made      int     `json:"made"`
	Sent      int     `json:"sent"`
	Share     float64 `json:"share"`
	Geometric float64 `json:"geometric"`
	Law       float64 `json:"law"`
}

// lengthPlan is what is predicted and measured with n active requests.
type lengthPlan struct {
	N             int          `json:"n"`
	Geometric     []int        `json:"B_star_geometric"`
	Corrected     []int        `json:"B_star_corrected"`
	Lines         []lengthLine `json:"lines"`
	Gain          pairJSON     `json:"corrected_over_eager"` // measured, tokens/s
	CorrectedOver pairJSON     `json:"corrected_over_geometric"`
}

// lengthLine is one vector of thresholds.
type lengthLine struct {
	Policy      string       `json:"policy"`
	B           []int        `json:"B"`
	ByGeometric float64      `json:"predicted_geometric"`
	BySmall     float64      `json:"predicted_small"` // with geometric runs or a few phases
	ByCorrected float64      `json:"predicted_corrected"`
	Measured    measuredJSON `json:"measured"`

	measured []float64
}

// measuredJSON is a mean over seeds with half its 95 % interval, null of one seed.
type measuredJSON struct {
	Mean float64  `json:"mean"`
	Half *float64 `json:"half"`
}

// pairJSON is a geometric mean of ratios over seeds with its 95 % interval.
type pairJSON struct {
	Ratio float64  `json:"ratio"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	Pairs int      `json:"pairs"`
}

// fill takes what the session says of itself.
func (r *runlengths) fill(path string) {
	m := r.manifest
	r.Router, r.Params, r.Requests = routerLabel(m.Router.File, m.Router.Hash), m.Params, len(r.ids)
	r.Session = filepath.Base(path)
	for _, model := range m.Models {
		r.Models = append(r.Models, model.Name)
	}
	r.Routing, r.Committed = r.est.P, r.est.K
}

// Steps of a run have a share of their own while so many were made.
const (
	hazardSteps = 50
	mostHazards = 64
)

// subserver takes the runs at p.
func (r *runlengths) subserver(p event.Peer, l metrics.Lengths) error {
	v := &l.All
	s := runsJSON{
		Role: event.Role(p, len(r.manifest.Models)), Steps: l.Steps, Runs: l.Runs, Mean: v.Mean, CV2: v.CV2, Geom: v.Geom,
		Tested: v.Tested, Chi2: v.Chi2, DF: v.DF, PValue: v.PValue, Far: v.Far, Next: l.Next, Pairs: l.Pairs, LawP: 1, SmallP: 1,
	}
	if l.Runs > 0 {
		life := plan.Life{Made: l.Made, Sent: l.Sent}
		law, err := plan.FitLaw(life)
		if err != nil {
			return fmt.Errorf("the runs at the %s model: %w", s.Role, err)
		}
		s.law = law
		s.Law, s.LawBIC = law.String(), law.BIC
		s.LawMean, s.LawCV2 = law.Moments()
		shares := law.Shares(len(l.Made))
		_, _, s.LawP, _ = l.Fit(func(k int) float64 { return shares[k-1] }, law.Params)
		s.GeomBIC = plan.GeometricLaw(life).BIC
		if s.small, err = plan.FitLaw(life, plan.Acyclic); err != nil {
			return err
		}
		s.Small, s.SmallBIC = s.small.String(), s.small.BIC
		s.SmallMean, s.SmallCV2 = s.small.Moments()
		small := s.small.Shares(len(l.Made))
		_, _, s.SmallP, _ = l.Fit(func(k int) float64 { return small[k-1] }, s.small.Params)
		if law.Phases != nil {
			s.Start, s.Phases = law.Start, law.Next
		}
		s.hazard(&l)
		s.bars(v, shares)
	}
	r.Subservers = append(r.Subservers, s)
	return nil
}

// hazard fills in the share of k-th steps that were sent on.
func (s *runsJSON) hazard(l *metrics.Lengths) {
	k := 0
	for ; k < len(l.Made) && k < mostHazards && l.Made[k] >= hazardSteps; k++ {
		s.hazards = append(s.hazards, float64(l.Sent[k])/float64(l.Made[k]))
	}
	made, sent := 0, 0
	for ; k < len(l.Made); k++ {
		made, sent = made+l.Made[k], sent+l.Sent[k]
	}
	switch {
	case sent > 0:
		s.hazards = append(s.hazards, float64(sent)/float64(made))
	case len(s.hazards) == 0 || s.hazards[len(s.hazards)-1] == 0: // nobody stays for ever
		s.hazards = append(s.hazards, float64(l.Runs)/float64(l.Steps))
	}
}

// bars sets the histogram beside the geometric law and the one that was chosen.
func (s *runsJSON) bars(v *metrics.Interval, shares []float64) {
	stay, k := 1.0, 0
	for _, b := range v.Bins {
		left := stay
		for ; k < b.To && k < len(shares); k++ {
			left *= 1 - shares[k]
		}
		s.Bins = append(s.Bins, runBin{From: b.From, To: b.To, Made: b.Made, Sent: b.Sent, Share: b.Share, Geometric: b.Geom, Law: stay - left})
		stay = left
	}
}

// send are laws of subservers in use, nil where runs are geometric.
func (r *runlengths) send(of func(*runsJSON) plan.Law) []*plan.Phases {
	var out []*plan.Phases
	for i, used := range r.est.Used {
		if used {
			var law *plan.Phases
			if r.est.P[i][i] < 1 {
				law = of(&r.Subservers[i]).Phases
			}
			out = append(out, law)
		}
	}
	return out
}

// ladderLine draws how many runs are done.
type ladderLine struct {
	liveLine
	done, total int
}

func newLadderLine(total int) *ladderLine {
	return &ladderLine{liveLine: newLiveLine(os.Stderr), total: total}
}

func (l *ladderLine) one(what string) {
	l.done++
	l.put(fmt.Sprintf("%d of at most %d runs  %s", l.done, l.total, what))
}
