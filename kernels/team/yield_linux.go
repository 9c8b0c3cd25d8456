package team

import "syscall"

// yield lets a thread of another program have the core if one waits for it.
// runtime.Gosched does that for goroutines of this one only.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
