package family

// llama is Llama 2 and 3 and what shares their architecture. Biases are off
// unless config.json asks for them; llama.cpp's converter reorders the rows of
// queries and keys for its own rotation (convert_hf_to_gguf.py, permute).
var llama = family{
	name:         "llama",
	architecture: "LlamaForCausalLM",
	paired:       true,
}
