package tensor

import "strconv"

// Type is the format of a tensor's numbers. Values below 1000 are those of a
// GGUF file (enum ggml_type); the others exist in safetensors only.
type Type uint32

// The types that Dequantize reads.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	IQ4_NL Type = 20
	IQ4_XS Type = 23
	BF16   Type = 30
)

// Types that are known by name and size, so that a file with them can be read
// and the tensor be refused by name.
const (
	Q8_1    Type = 9
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42

	Bool   Type = 1000
	U8     Type = 1001
	U16    Type = 1002
	U32    Type = 1003
	U64    Type = 1004
	F8E4M3 Type = 1005
	F8E5M2 Type = 1006
)

// layout is a type's name, the number of values in a block and a block's bytes.
type layout struct {
	name          string
	values, bytes int
}

var layouts = map[Type]layout{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2}, F64: {"F64", 1, 8},
	I8: {"I8", 1, 1}, I16: {"I16", 1, 2}, I32: {"I32", 1, 4}, I64: {"I64", 1, 8},
	Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20}, Q5_0: {"Q5_0", 32, 22}, Q5_1: {"Q5_1", 32, 24},
	Q8_0: {"Q8_0", 32, 34}, Q8_1: {"Q8_1", 32, 36}, IQ4_NL: {"IQ4_NL", 32, 18}, MXFP4: {"MXFP4", 32, 17},
	NVFP4: {"NVFP4", 64, 36}, Q1_0: {"Q1_0", 128, 18}, Q2_0: {"Q2_0", 64, 18},
	Q2_K: {"Q2_K", 256, 84}, Q3_K: {"Q3_K", 256, 110}, Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176},
	Q6_K: {"Q6_K", 256, 210}, Q8_K: {"Q8_K", 256, 292},
	IQ1_S: {"IQ1_S", 256, 50}, IQ1_M: {"IQ1_M", 256, 56}, IQ2_XXS: {"IQ2_XXS", 256, 66}, IQ2_XS: {"IQ2_XS", 256, 74},
	IQ2_S: {"IQ2_S", 256, 82}, IQ3_XXS: {"IQ3_XXS", 256, 98}, IQ3_S: {"IQ3_S", 256, 110}, IQ4_XS: {"IQ4_XS", 256, 136},
	TQ1_0: {"TQ1_0", 256, 54}, TQ2_0: {"TQ2_0", 256, 66},
	Bool: {"BOOL", 1, 1}, U8: {"U8", 1, 1}, U16: {"U16", 1, 2}, U32: {"U32", 1, 4}, U64: {"U64", 1, 8},
	F8E4M3: {"F8_E4M3", 1, 1}, F8E5M2: {"F8_E5M2", 1, 1},
}

// String is the type's name as the file formats write it, such as "Q4_K".
func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

// Block is the number of values in a block, 1 for plain numbers; 0 for a type
// that has no name here. A row is a whole number of blocks.
func (t Type) Block() int { return layouts[t].values }

// BlockBytes is the number of bytes of a block; 0 for a type without a name.
func (t Type) BlockBytes() int { return layouts[t].bytes }

// Named says that the type's name and layout are known.
func (t Type) Named() bool { return layouts[t].values > 0 }

// Known says that Dequantize reads the type.
func (t Type) Known() bool { return reader(t) != nil }

// Readable lists the types that Dequantize reads, for messages.
func Readable() []Type {
	return []Type{F32, F16, BF16, Q8_0, Q5_1, Q5_0, Q4_1, Q4_0, Q6_K, Q5_K, Q4_K, Q3_K, Q2_K, IQ4_XS, IQ4_NL}
}

// Bytes is the number of bytes of n values of a Named type, where n is a whole
// number of blocks.
func (t Type) Bytes(n int) int { return n / layouts[t].values * layouts[t].bytes }
