package workload

import "strings"

const (
	endOfThought = "</think>"
	endOfTurn    = "<|im_end|>"
)

// Extract returns the answer in a model's text: what stands between the end
// of the thought and the end mark, trimmed. The end mark may be missing,
// since special tokens add no text; ok is false if the thought never ends or
// nothing follows it.
func Extract(text string) (answer string, ok bool) {
	text, _, _ = strings.Cut(text, endOfTurn)
	i := strings.LastIndex(text, endOfThought)
	if i < 0 {
		return "", false
	}
	answer = strings.TrimSpace(text[i+len(endOfThought):])
	return answer, answer != ""
}

// Correct reports whether an extracted answer is the wanted one. Both are
// trimmed and then compared literally: "7" is neither "07" nor "7.".
func Correct(got, want string) bool {
	return strings.TrimSpace(got) == strings.TrimSpace(want)
}
