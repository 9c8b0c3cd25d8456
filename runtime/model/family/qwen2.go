package family

// qwen2 is the dense Qwen2 and Qwen2.5: queries, keys and values always have a
// bias, the output projection never (transformers, modeling_qwen2.py).
var qwen2 = family{
	name:         "qwen2",
	architecture: "Qwen2ForCausalLM",
	qkvBias:      true,
}
