package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Limits of a stored vocabulary: tokens, and bytes of all tokens together.
const (
	maxVocab      = 1 << 22
	maxVocabBytes = 128 << 20
)

// encodeVocab stores the bytes of every token id in order.
func encodeVocab(vocab [][]byte) ([]byte, error) {
	b := binary.AppendUvarint(nil, uint64(len(vocab)))
	for _, t := range vocab {
		b = binary.AppendUvarint(b, uint64(len(t)))
		b = append(b, t...)
	}
	if len(vocab) > maxVocab || len(b) > maxVocabBytes {
		return nil, fmt.Errorf("a vocabulary of %d tokens and %d bytes is larger than a session can hold", len(vocab), len(b))
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(b, nil), nil
}

func decodeVocab(src []byte) ([][]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxVocabBytes))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	b, err := z.DecodeAll(src, nil)
	if err != nil {
		return nil, err
	}
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)) || n > maxVocab {
		return nil, errors.New("bad number of tokens")
	}
	b = b[k:]
	vocab := make([][]byte, n)
	for i := range vocab {
		l, k := binary.Uvarint(b)
		if k <= 0 || l > uint64(len(b)-k) {
			return nil, fmt.Errorf("it ends within token %d", i)
		}
		vocab[i] = b[k : k+int(l) : k+int(l)]
		b = b[k+int(l):]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes lie behind its last token", len(b))
	}
	return vocab, nil
}
