// Package telemetry reads what the machine does while models run: processor
// and memory use of this process and of the machine, and the state of NVIDIA
// GPUs where a driver answers.
//
// A [Sampler] has no goroutine and keeps no history: whoever wants a figure
// calls [Sampler.Sample] and puts the [Snapshot] on the tape.
//
// Invariants:
//   - A figure that the platform does not give is absent ([Reading] unknown,
//     byte counts 0, GPUNote says why), never guessed.
//   - After a failed start of NVML nothing of it is called again: a missing
//     symbol would end the process beyond Go's reach.
//
// Read snapshot.go for what is measured, sampler.go for how. Linux reads
// /proc; gpu_nvml.go is built with cgo on Linux only.
package telemetry
