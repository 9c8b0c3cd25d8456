//go:build !amd64 || purego

package limits

var (
	peaks   = goPeaks
	readers = goReaders
)
