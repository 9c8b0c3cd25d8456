package vec

import (
	"fmt"

	"tokenrouter/kernels"
	"tokenrouter/kernels/mem"
)

// KVFormat is how the numbers of a page are stored.
type KVFormat uint8

const (
	F16 KVFormat = iota // half precision, rounded to even; infinite from 65520 on
	F32
)

func (f KVFormat) String() string {
	switch f {
	case F16:
		return "f16"
	case F32:
		return "f32"
	}
	return fmt.Sprintf("KVFormat(%d)", uint8(f))
}

// ParseKVFormat is the format of a name that String gives.
func ParseKVFormat(name string) (KVFormat, error) {
	switch name {
	case "f16":
		return F16, nil
	case "f32":
		return F32, nil
	}
	return 0, fmt.Errorf("vec: %q is no format of KV; it may be f16 or f32", name)
}

// PageLen is the number of positions of a page.
const PageLen = 16

// Page is how the keys and values of PageLen positions and one KV head lie in
// memory, in the machine's byte order: K as [dim][16 positions], so that scores
// of a page are sums over dim side by side; behind it V as
// [dim/16][16 positions][16], so that outputs are sums over positions, rounded
// up to whole groups of 16 values, of which the last may hold anything.
type Page struct {
	dim, wide int // values of a head; rounded up to whole groups
	f         KVFormat
}

// NewPage is the layout for heads of dim values.
func NewPage(dim int, f KVFormat) Page { return Page{dim: dim, wide: (dim + 15) &^ 15, f: f} }

// size is the bytes of one number.
func (g Page) size() int {
	if g.f == F16 {
		return 2
	}
	return 4
}

// Bytes is what a page takes, a multiple of 32.
func (g Page) Bytes() int { return (g.dim + g.wide) * PageLen * g.size() }

// values is where V begins.
func (g Page) values() int { return g.dim * PageLen * g.size() }

// Put stores the key and value of position at of a page (0..15), over what was
// there. It touches nothing of other positions, so several may be stored at the
// same time. The page starts at a multiple of 4 bytes.
func (g Page) Put(page []byte, at int, key, value []float32) {
	page = page[:g.Bytes()]
	key, value = key[:g.dim], value[:g.dim]
	if uint(at) >= PageLen {
		panic(fmt.Sprintf("vec: a page has no position %d, only 0..%d", at, PageLen-1))
	}
	if g.f == F32 {
		g.put32(mem.Float32s(page), at, key, value)
		return
	}
	half := mem.Uint16s(page)
	g.put16(half, at, g.putHalf(half, at, key, value), key, value)
}

func (g Page) put32(page []float32, at int, key, value []float32) {
	for i, x := range key {
		page[i*PageLen+at] = x
	}
	v := page[g.dim*PageLen:]
	for i, x := range value {
		v[(i&^15+at)*16+i&15] = x
	}
}

// put16 stores the values from number from on.
func (g Page) put16(page []uint16, at, from int, key, value []float32) {
	v := page[g.dim*PageLen:]
	for i := from; i < g.dim; i++ {
		page[i*PageLen+at] = kernels.ToF16(key[i])
		v[(i&^15+at)*16+i&15] = kernels.ToF16(value[i])
	}
}

// part is a page's K (from 0) or V (from values) of the KV head at byte at, as
// halves or as floats.
func (g Page) part(page []byte, at, from int) (half []uint16, float []float32) {
	b := page[at:][:g.Bytes()][from:]
	if g.f == F16 {
		return mem.Uint16s(b), nil
	}
	return nil, mem.Float32s(b)
}

// accumulate adds x times the 16 numbers of a part from number i on to acc.
func accumulate(acc *[16]float32, x float32, half []uint16, float []float32, i int) {
	var row [16]float32
	if half == nil {
		row = [16]float32(float[i:])
	} else {
		for l, h := range half[i:][:16] {
			row[l] = kernels.F16(h)
		}
	}
	for l, y := range row {
		f, odd := rounded(x, y, acc[l])
		if odd {
			f = fmaOdd(x, y, acc[l])
		}
		acc[l] = f
	}
}

// scoresGo writes q . K of all positions of pages, 16 for each.
func (g Page) scoresGo(s, q []float32, pages [][]byte, at int) {
	for p, page := range pages {
		half, float := g.part(page, at, 0)
		acc := (*[PageLen]float32)(s[p*PageLen:])
		clear(acc[:])
		for i, x := range q {
			accumulate(acc, x, half, float, i*PageLen)
		}
	}
}

// addValuesGo adds w . V of the positions from..to-1 of pages to o, whole groups
// of 16 values, position by position.
func (g Page) addValuesGo(o, w []float32, pages [][]byte, at, from, to int) {
	for p := from; p < to; p++ {
		half, float := g.part(pages[p/PageLen], at, g.values())
		for i := 0; i < len(o); i += 16 {
			accumulate((*[16]float32)(o[i:]), w[p], half, float, i*PageLen+p%PageLen*16)
		}
	}
}
