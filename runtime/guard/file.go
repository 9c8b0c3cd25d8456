package guard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"
)

// maxStacks bounds the stacks of all goroutines in a crash file, in bytes.
const maxStacks = 1 << 20

// writeFile writes crash-TIME-PID-SERIAL.txt into dir and returns its path.
// Only the user may read it: a panic value can hold text of a prompt.
func writeFile(dir string, serial int, c Crash) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	now := time.Now().UTC()
	name := fmt.Sprintf("crash-%s-%d-%d.txt", now.Format("20060102T150405Z"), os.Getpid(), serial)
	path := filepath.Join(dir, name)

	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\ntime      %s\nprogram   %s\nplatform  %s %s/%s, %d CPUs\n\n", c.Error(),
		now.Format(time.RFC3339), version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(&b, "stack of the panic:\n%s\nstacks of all goroutines:\n%s\n", c.Stack, allStacks())

	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(b.Bytes())
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return path, err
}

// appendFile adds a section to a crash file; an empty path is no file.
func appendFile(path, section string) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\n%s\n", section)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func allStacks() []byte {
	buf := make([]byte, maxStacks)
	return buf[:runtime.Stack(buf, true)]
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown build"
	}
	return info.Main.Path + " " + info.Main.Version
}
