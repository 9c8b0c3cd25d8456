package checkpoint

import "tokenrouter/runtime/model/gguf"

// Parse is Open for a GGUF file in memory.
func Parse(b []byte) (*Checkpoint, error) {
	f, err := gguf.Parse(b)
	if err != nil {
		return nil, err
	}
	return fromGGUF(f, "m.gguf")
}
