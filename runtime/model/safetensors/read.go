package safetensors

import (
	"fmt"
	"slices"

	"tokenrouter/kernels"
)

// ReadFloat32 reads a tensor of type F32, F16 or BF16, whose shape must be the
// given one, as float32 in row-major order.
func (f *File) ReadFloat32(name string, shape ...int) ([]float32, error) {
	t, ok := f.tensors[name]
	if !ok {
		return nil, fmt.Errorf("safetensors: there is no tensor %q: the file belongs to another kind of model", name)
	}
	if !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("safetensors: tensor %q has shape %v, config.json implies %v: the files do not belong together", name, t.Shape, shape)
	}
	var convert func([]float32, []byte)
	switch t.DType {
	case "F32":
		convert = kernels.FromF32
	case "F16":
		convert = kernels.FromF16
	case "BF16":
		convert = kernels.FromBF16
	default:
		return nil, fmt.Errorf("safetensors: tensor %q is %s: convert the model to F32, F16 or BF16", name, t.DType)
	}
	size := int(dtypeSize[t.DType])
	out := make([]float32, t.Len())
	const chunk = 1 << 16 // values at a time, so that the raw bytes are never held twice
	raw := make([]byte, min(len(out), chunk)*size)
	for i := 0; i < len(out); i += chunk {
		n := min(chunk, len(out)-i)
		if err := readFull(f.r, raw[:n*size], f.data+t.Begin+int64(i*size)); err != nil {
			return nil, err
		}
		convert(out[i:i+n], raw)
	}
	return out, nil
}
