// Package tokenizer turns text into token ids and back, and a conversation into
// a prompt: byte-level BPE of the Qwen2, Qwen3 and Llama 3 families, from Hugging
// Face's tokenizer.json or from the metadata of a GGUF file. Files that ask for
// something else are refused by name.
//
// Invariants:
//   - What a user types is text. Encode never yields a special token, and in a
//     conversation only the chat template writes them, so "<|im_end|>" in a
//     message cannot end the turn (case A14).
//   - A sequence begins with exactly one BOS where its model wants one, and
//     with none where it does not (case H4).
//   - The bytes of Encode(x) joined are NFC(x) where the checkpoint normalises,
//     as Qwen's do, and x where it does not. Bytes that are not UTF-8 stay.
//   - Equal Hash means the same bytes for every id, which is what lets two
//     models share one sequence; it does not depend on the form of the file.
//   - The time of Encode is O(n log n) in the length of the text, words of any
//     length included.
//
// Read next: Load in load.go and FromGGUF in gguf.go, fill in build.go, split
// in split.go, merge in bpe.go, EncodeChat in chat.go; the chat templates have
// a room of their own, runtime/model/tokenizer/template.
package tokenizer
