package limits

import (
	"os"
	"strconv"
	"strings"
)

// largestCache is the bytes of the largest cache of the first core, 0 where the
// kernel does not tell.
func largestCache() int64 {
	var most int64
	for i := range 8 {
		text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cache/index" + strconv.Itoa(i) + "/size")
		if err != nil {
			break
		}
		most = max(most, cacheSize(string(text)))
	}
	return most
}

// cacheSize reads a size such as "32768K".
func cacheSize(text string) int64 {
	text = strings.TrimSpace(text)
	unit := int64(1)
	switch {
	case strings.HasSuffix(text, "K"):
		unit = 1 << 10
	case strings.HasSuffix(text, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseInt(strings.TrimRight(text, "KM"), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return n * unit
}
