//go:build !cgo || !linux

package telemetry

// gpuReader has no NVML in this build.
type gpuReader struct{}

func openGPUs() gpuReader { return gpuReader{} }

func (*gpuReader) note() string { return "GPU figures need a Linux build with cgo" }

func (*gpuReader) read() []GPU { return nil }

func (*gpuReader) close() {}
