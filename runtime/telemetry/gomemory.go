package telemetry

import "runtime/metrics"

// goMemory returns the bytes the Go runtime has mapped and not given back.
func goMemory() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0
		}
	}
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
