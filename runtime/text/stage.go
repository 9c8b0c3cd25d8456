package text

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// Reason says why a request ended, in the words of the OpenAI interface.
type Reason string

// The reasons a request can end for.
const (
	ReasonStop   Reason = "stop"   // end token, or a stop string
	ReasonLength Reason = "length" // max_tokens
	ReasonAbort  Reason = "abort"  // cancelled or failed
)

// Out is what one [Stage.Push] allows.
type Out struct {
	Text string // may go to the client now; valid UTF-8, often empty
	Stop *Stop  // set once, by the push that completed a stop string
}

// Stop tells where a stop string was found.
type Stop struct {
	Pos  int    // position of the token in which it began: the core's Stop{id, pos}
	Text string // the stop string
}

// Tail is the end of the text, from [Stage.Flush].
type Tail struct {
	Text   string // last text for the client: what was held and turned out to be no stop string
	Reason Reason // ReasonStop where a stop string was found, else the reason given
	Cut    []byte // bytes of an incomplete last character, dropped from the text; nil if none
	Lost   []int  // ascending positions that waited behind a gap and were never reached; nil unless aborted or faulty
}

// Stage orders the tokens of one request by position and holds back what may
// not be sent yet: incomplete UTF-8, and the longest end of the text that is
// a proper prefix of a stop string. Bytes that can never become UTF-8 are
// replaced by U+FFFD, one for each byte.
//
// The first stop string to be completed, byte by byte, ends the text; of two
// completed by the same byte the longer one counts. A Stage is not safe for
// concurrent use; the client loop of the request owns it.
type Stage struct {
	next    int           // position of the next token in order
	waiting map[int]token // tokens beyond next

	raw    []byte // start of a character not complete yet, at most 3 bytes
	rawPos []int  // position of the token that holds each byte of raw

	stops   []matcher
	held    []byte // decoded, a proper prefix of a stop string
	heldPos []int  // position of the token each held byte's character began in

	stop    *Stop
	flushed bool
	scratch []byte
}

type token struct {
	bytes   []byte
	special bool
}

// New returns the stage of a request whose first generated token has position
// first. It refuses an empty stop string and one that is not UTF-8.
func New(first int, stops []string) (*Stage, error) {
	s := &Stage{next: first, stops: make([]matcher, 0, len(stops))}
	for _, stop := range stops {
		m, err := newMatcher(stop)
		if err != nil {
			return nil, err
		}
		s.stops = append(s.stops, m)
	}
	return s, nil
}

// Clone returns a stage that goes on as s would, and leaves s as it is.
func (s *Stage) Clone() *Stage {
	d := *s
	d.waiting, d.scratch = maps.Clone(s.waiting), nil
	d.raw, d.rawPos = slices.Clone(s.raw), slices.Clone(s.rawPos)
	d.held, d.heldPos = slices.Clone(s.held), slices.Clone(s.heldPos)
	d.stops = slices.Clone(s.stops)
	return &d
}

// Next is the position behind the tokens that came without a gap.
func (s *Stage) Next() int { return s.next }

// Push takes the token at pos in any order of positions; each position comes
// once. A special token (end of turn, padding) takes its place in the order
// and adds no text. The bytes are copied where they have to wait.
//
// Tokens after a stop string, and after Flush, are cut: Push accepts them and
// gives nothing. A position that was taken already or lies before the first
// is an error and changes nothing.
func (s *Stage) Push(pos int, bytes []byte, special bool) (Out, error) {
	if s.stop != nil || s.flushed {
		return Out{}, nil
	}
	if pos < s.next {
		return Out{}, fmt.Errorf("token at position %d came twice or too late: the text has reached position %d", pos, s.next)
	}
	if pos > s.next {
		if _, twice := s.waiting[pos]; twice {
			return Out{}, fmt.Errorf("token at position %d came twice while position %d is missing", pos, s.next)
		}
		if s.waiting == nil {
			s.waiting = make(map[int]token)
		}
		s.waiting[pos] = token{append([]byte(nil), bytes...), special}
		return Out{}, nil
	}
	s.scratch = s.scratch[:0]
	s.take(token{bytes, special})
	for len(s.waiting) > 0 && s.stop == nil {
		t, ok := s.waiting[s.next]
		if !ok {
			break
		}
		delete(s.waiting, s.next)
		s.take(t)
	}
	return Out{Text: string(s.scratch), Stop: s.stop}, nil
}

// Flush ends the text. A second call gives an empty tail with the same reason
// as its argument, or ReasonStop where a stop string was found.
func (s *Stage) Flush(reason Reason) Tail {
	tail := Tail{Reason: reason}
	if s.stop != nil {
		tail.Reason = ReasonStop
	}
	if s.stop == nil && !s.flushed {
		tail.Text = string(s.held)
		tail.Cut = s.raw
		if len(s.raw) == 0 {
			tail.Cut = nil
		}
		tail.Lost = slices.Sorted(maps.Keys(s.waiting))
	}
	s.flushed = true
	s.drop()
	return tail
}

// drop lets go of everything that will not be sent.
func (s *Stage) drop() {
	s.waiting, s.raw, s.rawPos, s.held, s.heldPos = nil, nil, nil, nil, nil
}

// take appends the token at s.next to the text.
func (s *Stage) take(t token) {
	pos := s.next
	s.next++
	if t.special {
		return
	}
	for _, b := range t.bytes {
		s.raw = append(s.raw, b)
		s.rawPos = append(s.rawPos, pos)
		for len(s.raw) > 0 && utf8.FullRune(s.raw) {
			r, size := utf8.DecodeRune(s.raw)
			s.character(r, s.rawPos[0])
			if s.stop != nil {
				s.drop()
				return
			}
			s.raw = s.raw[:copy(s.raw, s.raw[size:])]
			s.rawPos = s.rawPos[:copy(s.rawPos, s.rawPos[size:])]
		}
	}
}

// character appends one decoded character that began in the token at pos: to
// held, and from there whatever can no longer be part of a stop string to
// scratch.
func (s *Stage) character(r rune, pos int) {
	before := len(s.held)
	s.held = utf8.AppendRune(s.held, r)
	longest, keep := 0, 0
	for i := before; i < len(s.held); i++ {
		s.heldPos = append(s.heldPos, pos)
		keep = 0
		for j := range s.stops {
			m := &s.stops[j]
			if m.feed(s.held[i]) && m.n > longest {
				longest = m.n
				s.stop = &Stop{Text: m.stop}
			}
			keep = max(keep, m.n)
		}
	}
	if s.stop != nil {
		begin := len(s.held) - longest
		s.stop.Pos = s.heldPos[begin]
		s.release(begin)
		return
	}
	s.release(len(s.held) - keep)
}

// release moves the first n held bytes to the text that may be sent.
func (s *Stage) release(n int) {
	s.scratch = append(s.scratch, s.held[:n]...)
	s.held = s.held[:copy(s.held, s.held[n:])]
	s.heldPos = s.heldPos[:copy(s.heldPos, s.heldPos[n:])]
}
