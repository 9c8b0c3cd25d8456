//go:build unix

package tensor

import (
	"fmt"
	"runtime/debug"
	"sync"
	"unsafe"
)

// mapped are the mappings of the process, to find the file of an address.
var mapped struct {
	sync.Mutex
	all map[*Mapping]struct{}
}

func (m *Mapping) register() {
	mapped.Lock()
	defer mapped.Unlock()
	if mapped.all == nil {
		mapped.all = map[*Mapping]struct{}{}
	}
	mapped.all[m] = struct{}{}
}

func (m *Mapping) forget() {
	mapped.Lock()
	defer mapped.Unlock()
	delete(mapped.all, m)
}

// at is the path of the file that is mapped at an address.
func at(addr uintptr) (string, bool) {
	mapped.Lock()
	defer mapped.Unlock()
	for m := range mapped.all {
		if start := uintptr(unsafe.Pointer(unsafe.SliceData(m.Data))); addr-start < uintptr(len(m.Data)) {
			return m.path, true
		}
	}
	return "", false
}

// Guard runs f, which reads mapped files on the calling goroutine, and returns
// its error. A page that the system cannot read, because the file was shortened
// after it was mapped or its disk fails, is an error too: without Guard it ends
// the process (SIGBUS). Any other panic of f stays one.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if fault, ok := v.(interface{ Addr() uintptr }); ok {
			if path, ok := at(fault.Addr()); ok {
				err = fmt.Errorf("%s cannot be read any more: it was changed while it was in use, or its disk fails; fetch the file again", path)
				return
			}
		}
		panic(v)
	}()
	return f()
}
