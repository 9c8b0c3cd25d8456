//go:build cgo && linux

package telemetry

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpuReader reads GPUs through NVML. Only calls that exist since the first
// versions of the library are used: one that is missing in the driver's would
// end the process.
type gpuReader struct {
	lib     nvml.Interface // nil after a failed start
	devices []gpuDevice
	why     string // why there are no devices
}

type gpuDevice struct {
	handle nvml.Device
	index  int
	name   string
}

func openGPUs() gpuReader { return openNVML(nvml.New()) }

// openNVML starts the library and keeps the devices' handles and names.
func openNVML(lib nvml.Interface) gpuReader {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return gpuReader{why: initFailure(ret)}
	}
	g := gpuReader{lib: lib}
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		g.why = fmt.Sprintf("the NVIDIA driver does not list its GPUs (NVML code %d)", int(ret))
		return g
	}
	for i := range count {
		handle, ret := lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			g.why = fmt.Sprintf("the NVIDIA driver does not open GPU %d (NVML code %d)", i, int(ret))
			continue
		}
		name, ret := handle.GetName()
		if ret != nvml.SUCCESS {
			name = "NVIDIA GPU"
		}
		g.devices = append(g.devices, gpuDevice{handle, i, name})
	}
	if count == 0 {
		g.why = "no NVIDIA GPU"
	}
	return g
}

// initFailure words a failed start. It formats the code itself: Return.Error
// would call into the library.
func initFailure(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "no NVIDIA driver"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "NVIDIA driver is not loaded"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission to use the NVIDIA driver"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "NVIDIA driver and library differ in version; restart the machine"
	default:
		return fmt.Sprintf("NVIDIA driver does not answer (NVML code %d)", int(ret))
	}
}

func (g *gpuReader) note() string {
	if len(g.devices) > 0 {
		return ""
	}
	return g.why
}

// read asks every device; what one does not report is left unknown.
func (g *gpuReader) read() []GPU {
	if len(g.devices) == 0 {
		return nil
	}
	out := make([]GPU, len(g.devices))
	for i, d := range g.devices {
		gpu := GPU{Index: d.index, Name: d.name}
		if u, ret := d.handle.GetUtilizationRates(); ret == nvml.SUCCESS {
			gpu.Util = known(float64(u.Gpu) / 100)
		}
		if m, ret := d.handle.GetMemoryInfo(); ret == nvml.SUCCESS {
			gpu.MemoryUsed, gpu.MemoryTotal = m.Used, m.Total
		}
		if milliwatts, ret := d.handle.GetPowerUsage(); ret == nvml.SUCCESS {
			gpu.Power = known(float64(milliwatts) / 1000)
		}
		out[i] = gpu
	}
	return out
}

func (g *gpuReader) close() {
	if g.lib != nil {
		g.lib.Shutdown()
		g.lib, g.devices = nil, nil
	}
}
