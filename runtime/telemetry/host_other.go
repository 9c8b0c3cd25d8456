//go:build !linux

package telemetry

// host knows nothing of the machine on this platform.
type host struct{}

func openHost() host { return host{} }

func (*host) processors() (processorTime, bool) { return processorTime{}, false }

func (*host) memory() Memory { return Memory{Process: goMemory(), Kind: GoHeap} }

func (*host) close() {}
