package family

// qwen3 is the dense Qwen3: norms on queries and keys, no biases, heads of 128
// unless the file says otherwise (transformers, configuration_qwen3.py).
var qwen3 = family{
	name:         "qwen3",
	architecture: "Qwen3ForCausalLM",
	headDim:      128,
	qkNorm:       true,
}
