// Package tokenizer turns text into token ids and back: byte-level BPE as in
// Hugging Face's tokenizer.json with the split rule of Qwen2 and Qwen3, and the
// ChatML form of a conversation.
//
// Invariants: what a user types is text. Encode never yields an added token,
// so "<|im_end|>" in a message cannot end the turn (case A14); only EncodeChat
// writes those. The bytes of Encode(x) joined are NFC(x). Equal Hash means the
// same bytes for every id, which is what lets two models share one sequence.
//
// Read next: Load in load.go, split in split.go, merge in bpe.go, EncodeChat
// in chat.go.
package tokenizer
