package rng

// Purpose separates the streams of one request at one position: the sampler's
// draw is independent of the router's.
type Purpose uint32

// The purposes. The values are part of what a seed means and are never
// renumbered: a recorded session replays only as long as they stand.
const (
	Sample   Purpose = 1 // the token drawn from the logits
	Router   Purpose = 2 // r.random(k) in a router
	Workload Purpose = 3 // choices made while a workload is built
)

// The purposes of what stands for models, clients and the passing of time.
const (
	Route  Purpose = 0x100 + iota // scripted candidate and destination of a row
	Phase                         // phase of a send interval
	Length                        // new tokens of a request
	Jitter                        // time of a step
	Prompt                        // tokens of a prompt
	Stall                         // how much longer a step takes than its like
)

// Whole families: each is the first of sixteen purposes.
const (
	Law      Purpose = 0x110 // what an emulated model says
	Arrivals Purpose = 0x120 // when clients send
)

// Resample is which problem a resample of a bootstrap draws.
const Resample Purpose = 0x130

// Draws that train heads.
const (
	Split  Purpose = 0x131 // whether a problem is held out
	Deal   Purpose = 0x132 // order of rows in an epoch
	Weight Purpose = 0x133 // initial weights
)

// Key names one random stream.
type Key struct {
	Seed    uint64  // session seed
	Req     uint64  // stable identity of the request, not its place of arrival
	Pos     int     // absolute token position the draw is for
	Model   int     // index of the model that draws
	Purpose Purpose // what the draw is for
}

// Uint64 returns the n-th draw of the stream, uniform over all 64-bit values.
// Draws are addressed, not consumed: the same n gives the same value again.
func (k Key) Uint64(n int) uint64 {
	block := philox4x64(
		[4]uint64{uint64(k.Pos), uint64(k.Purpose)<<32 | uint64(uint32(k.Model)), uint64(n) >> 2, 0},
		[2]uint64{k.Seed, k.Req},
	)
	return block[n&3]
}

// Float64 returns the n-th draw as a number in [0, 1), a multiple of 2^-53.
func (k Key) Float64(n int) float64 {
	return float64(k.Uint64(n)>>11) * 0x1p-53
}
