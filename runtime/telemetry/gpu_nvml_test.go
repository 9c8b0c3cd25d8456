//go:build cgo && linux

package telemetry

import (
	"fmt"
	"os"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/google/go-cmp/cmp"
)

// The GPUs of these tests are mocks behind nvml.Interface: a function that is
// not given panics, so a test also shows that nothing else is called.

// mockGPU is a device that answers each question.
func mockGPU(name string, util uint32, used, total uint64, milliwatts uint32) *mock.Device {
	return &mock.Device{
		GetNameFunc: func() (string, nvml.Return) { return name, nvml.SUCCESS },
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: util, Memory: 3}, nvml.SUCCESS
		},
		GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
			return nvml.Memory{Total: total, Used: used, Free: total - used}, nvml.SUCCESS
		},
		GetPowerUsageFunc: func() (uint32, nvml.Return) { return milliwatts, nvml.SUCCESS },
	}
}

// mockDriver lists devices; a nil one does not open.
func mockDriver(devices ...*mock.Device) *mock.Interface {
	return &mock.Interface{
		InitFunc:           func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:       func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc: func() (int, nvml.Return) { return len(devices), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			if devices[i] == nil {
				return nil, nvml.ERROR_GPU_IS_LOST
			}
			return devices[i], nvml.SUCCESS
		},
	}
}

// Case H6: after a failed Init nothing is called, Shutdown included, and the
// note says what is missing.
func TestFailedInit(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "no NVIDIA driver",
		nvml.ERROR_DRIVER_NOT_LOADED:       "NVIDIA driver is not loaded",
		nvml.ERROR_NO_PERMISSION:           "no permission to use the NVIDIA driver",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "NVIDIA driver and library differ in version; restart the machine",
		nvml.ERROR_UNKNOWN:                 fmt.Sprintf("NVIDIA driver does not answer (NVML code %d)", int(nvml.ERROR_UNKNOWN)),
	} {
		lib := &mock.Interface{InitFunc: func() nvml.Return { return ret }}
		g := openNVML(lib)
		for range 2 {
			if gpus := g.read(); gpus != nil || g.note() != want {
				t.Errorf("code %d: GPUs %v, note %q; want %q", int(ret), gpus, g.note(), want)
			}
		}
		g.close()
		if n := len(lib.InitCalls()); n != 1 {
			t.Errorf("code %d: Init was called %d times", int(ret), n)
		}
	}
}

// Case H6 without a mock, where no driver is installed.
func TestNoDriverHere(t *testing.T) {
	if _, err := os.Stat("/proc/driver/nvidia/version"); err == nil {
		t.Skip("this machine has an NVIDIA driver")
	}
	s := NewSampler()
	defer s.Close()
	for range 3 {
		if got := s.Sample(); got.GPUs != nil || got.GPUNote != "no NVIDIA driver" {
			t.Errorf("GPUs %v, note %q", got.GPUs, got.GPUNote)
		}
	}
}

func TestMockGPUs(t *testing.T) {
	mute := mockGPU("Mock MIG", 0, 0, 0, 0)
	mute.GetNameFunc = func() (string, nvml.Return) { return "", nvml.ERROR_UNKNOWN }
	mute.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED }
	mute.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_NO_PERMISSION }
	mute.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }

	lib := mockDriver(mockGPU("Mock H200", 37, 5<<30, 141<<30, 412_500), nil, mute)
	g := openNVML(lib)
	want := []GPU{
		{Index: 0, Name: "Mock H200", Util: known(0.37), MemoryUsed: 5 << 30, MemoryTotal: 141 << 30, Power: known(412.5)},
		{Index: 2, Name: "NVIDIA GPU"},
	}
	for range 2 {
		if diff := cmp.Diff(want, g.read()); diff != "" || g.note() != "" {
			t.Errorf("note %q, GPUs differ: %s", g.note(), diff)
		}
	}
	g.close()
	g.close()
	if n := len(lib.ShutdownCalls()); n != 1 {
		t.Errorf("Shutdown was called %d times", n)
	}
}

func TestMockDriverWithoutGPUs(t *testing.T) {
	noList := mockDriver()
	noList.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	for want, lib := range map[string]*mock.Interface{
		"no NVIDIA GPU": mockDriver(),
		"the NVIDIA driver does not list its GPUs (NVML code 999)": noList,
		"the NVIDIA driver does not open GPU 0 (NVML code 15)":     mockDriver(nil),
	} {
		g := openNVML(lib)
		if gpus := g.read(); gpus != nil || g.note() != want {
			t.Errorf("GPUs %v, note %q; want %q", gpus, g.note(), want)
		}
		g.close()
		if n := len(lib.ShutdownCalls()); n != 1 {
			t.Errorf("%s: Shutdown was called %d times", want, n)
		}
	}
}
