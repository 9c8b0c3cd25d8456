package team

import "syscall"

// yield lets another thread have the core if one waits for it. The goroutine
// scheduler knows nothing of it: yielding there (runtime.Gosched) does not give
// the core away when the process has more threads than cores.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
