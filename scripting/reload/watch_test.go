package reload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	before = "function route(r) return STAY end\n"
	after  = "function route(r) return HOME end\n"
)

// fakeNotifier stands for the file system's notifications: the test sends them.
type fakeNotifier struct {
	mu       sync.Mutex
	events   chan fsnotify.Event
	failures chan error
	dirs     []string
	closed   bool
}

func (f *fakeNotifier) Add(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirs = append(f.dirs, dir)
	return nil
}

func (f *fakeNotifier) followed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.dirs)
}
func (f *fakeNotifier) Remove(string) error            { return nil }
func (f *fakeNotifier) Changes() <-chan fsnotify.Event { return f.events }
func (f *fakeNotifier) Failures() <-chan error         { return f.failures }
func (f *fakeNotifier) Close() error                   { f.closed = true; return nil }

// bench is a watched file in virtual time.
type bench struct {
	t     *testing.T
	dir   string
	path  string
	mu    sync.Mutex
	heard []string // texts, or errors as "! ..."
	n     *fakeNotifier
	w     *Watcher
}

func newBench(t *testing.T, notified bool) *bench {
	b := &bench{t: t, dir: t.TempDir()}
	b.path = filepath.Join(b.dir, "r.lua")
	b.write("r.lua", before)
	b.start(notified)
	return b
}

func (b *bench) start(notified bool) {
	var n notifier
	if notified {
		b.n = &fakeNotifier{events: make(chan fsnotify.Event), failures: make(chan error)}
		n = b.n
	}
	b.w = newWatcher(b.path, before, func(text string, err error) {
		if err != nil {
			text = "! " + err.Error()
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = append(b.heard, text)
	}, n)
	go b.w.Run()
}

func (b *bench) write(name, text string) {
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) rename(from, to string) {
	if err := os.Rename(filepath.Join(b.dir, from), filepath.Join(b.dir, to)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) remove(name string) {
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// tell sends a notification and lets d pass.
func (b *bench) tell(name string, op fsnotify.Op, d time.Duration) {
	if b.n != nil {
		b.n.events <- fsnotify.Event{Name: filepath.Join(b.dir, name), Op: op}
	}
	time.Sleep(d) // virtual
}

func (b *bench) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = nil
}

func (b *bench) want(what ...string) {
	b.t.Helper()
	time.Sleep(3 * time.Second) // virtual: several polls
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Join(b.heard, "|") != strings.Join(what, "|") {
		b.t.Errorf("heard %q, want %q", b.heard, what)
	}
}

// Case I6: however the file is saved, the final content is told exactly once,
// with notifications and without.
func TestSaves(t *testing.T) {
	saves := map[string]func(b *bench){
		"in place": func(b *bench) {
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Write, 0)
		},
		"truncate then write, 20 ms apart": func(b *bench) {
			b.write("r.lua", "")
			b.tell("r.lua", fsnotify.Write, 20*time.Millisecond)
			b.write("r.lua", after[:10])
			b.tell("r.lua", fsnotify.Write, 20*time.Millisecond)
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Write, 0)
		},
		"truncate then write, 150 ms apart": func(b *bench) {
			b.write("r.lua", "")
			b.tell("r.lua", fsnotify.Write, 150*time.Millisecond)
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Write, 0)
		},
		"VSCode: write and chmod": func(b *bench) {
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Write, time.Millisecond)
			b.tell("r.lua", fsnotify.Chmod, 0)
		},
		"vim: backup, new file, remove backup": func(b *bench) {
			b.write("4913", "")
			b.tell("4913", fsnotify.Create, 0)
			b.remove("4913")
			b.tell("4913", fsnotify.Remove, time.Millisecond)
			b.rename("r.lua", "r.lua~")
			b.tell("r.lua", fsnotify.Rename, 5*time.Millisecond)
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Create, time.Millisecond)
			b.tell("r.lua", fsnotify.Write, time.Millisecond)
			b.remove("r.lua~")
			b.tell("r.lua~", fsnotify.Remove, 0)
		},
		"sed -i: rename over": func(b *bench) {
			b.write("sedXYZ", after)
			b.tell("sedXYZ", fsnotify.Create, time.Millisecond)
			b.rename("sedXYZ", "r.lua")
			b.tell("r.lua", fsnotify.Create, 0)
		},
		"delete, then create": func(b *bench) {
			b.remove("r.lua")
			b.tell("r.lua", fsnotify.Remove, 100*time.Millisecond)
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Create, 0)
		},
		"many writes in a row": func(b *bench) {
			for i := range 20 {
				b.write("r.lua", after+strings.Repeat("-", i))
				b.tell("r.lua", fsnotify.Write, 10*time.Millisecond)
			}
			b.write("r.lua", after)
			b.tell("r.lua", fsnotify.Write, 0)
		},
		"lost notification": func(b *bench) { b.write("r.lua", after) },
		"overflow": func(b *bench) {
			b.write("r.lua", after)
			if b.n != nil {
				b.n.failures <- errors.New("queue overflow")
			}
		},
	}
	for name, save := range saves {
		for mode, notified := range map[string]bool{"notified": true, "poll": false} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, notified)
					defer b.w.Close()
					time.Sleep(time.Second)
					save(b)
					b.want(after)
					b.write("r.lua", before)
					b.want(after, before)
				})
			})
		}
	}
}

// A notified save is told within two settling times, not at the next poll.
func TestNotificationIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, true)
		defer b.w.Close()
		time.Sleep(time.Second + 10*time.Millisecond)
		b.write("r.lua", after)
		b.tell("r.lua", fsnotify.Write, 2*settle+time.Millisecond)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.heard) != 1 || b.heard[0] != after {
			t.Errorf("heard %q", b.heard)
		}
	})
}

// The same content, and files beside it, are no change.
func TestNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, true)
		defer b.w.Close()
		b.write("r.lua", before)
		b.tell("r.lua", fsnotify.Write, time.Second)
		b.write("other.lua", after)
		b.tell("other.lua", fsnotify.Write, time.Second)
		b.tell("r.lua", fsnotify.Chmod, time.Second)
		b.want()
	})
}

// Case I6: an empty or vanished file is told once; the text's return is told,
// the same text included, so that a warning can clear.
func TestEmptyAndGone(t *testing.T) {
	for _, notified := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, notified)
			defer b.w.Close()
			b.write("r.lua", " \n")
			b.tell("r.lua", fsnotify.Write, 0)
			b.want("! router file " + b.path + ": the file is empty")
			b.forget()
			b.remove("r.lua")
			b.tell("r.lua", fsnotify.Remove, 0)
			b.want("! router file " + b.path + ": the file is gone")
			b.forget()
			b.write("r.lua", before)
			b.tell("r.lua", fsnotify.Create, 0)
			b.want(before)
			b.forget()
			b.write("r.lua", strings.Repeat("x", maxFile+1))
			b.tell("r.lua", fsnotify.Write, 0)
			b.want("! router file " + b.path + ": the file has more than 1048576 bytes; a router is a small text file")
			b.forget()
			b.remove("r.lua")
			if err := os.Symlink(os.DevNull, b.path); err != nil {
				t.Fatal(err)
			}
			b.tell("r.lua", fsnotify.Create, 0)
			b.want("! router file " + b.path + ": it is no regular file")
		})
	}
}

// Case I6: the file is reached through symlinks, and one of them is swapped: of
// the file, and of the folder, where no notification comes.
func TestSymlinkSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, dir: t.TempDir()}
		for name, text := range map[string]string{"v1": before, "v2": after, "v3": before + "-- 3\n"} {
			if err := os.Mkdir(filepath.Join(b.dir, name), 0o755); err != nil {
				t.Fatal(err)
			}
			b.write(filepath.Join(name, "r.lua"), text)
		}
		link := func(target, name string) {
			if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		link("v1", "current")
		b.path = filepath.Join(b.dir, "current", "r.lua")
		b.start(true)
		defer b.w.Close()
		link("v2", "next")
		b.rename("next", "current")
		b.want(after)
		if n := b.n.followed(); n != 2 {
			t.Errorf("the new folder is not followed: %d", n)
		}
		b.write("current/r.lua", before)
		b.tell("current/r.lua", fsnotify.Write, 0)
		b.want(after, before)

		// The file itself as a link.
		b.remove("current/r.lua")
		link("../v3/r.lua", "current/r.lua")
		b.want(after, before, before+"-- 3\n")
	})
}

// The folder may come later, and the file may have changed since it was loaded.
func TestFolderComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, dir: t.TempDir()}
		b.path = filepath.Join(b.dir, "new", "r.lua")
		b.start(true)
		defer b.w.Close()
		b.want("! router file " + b.path + ": the file is gone")
		b.forget()
		if err := os.Mkdir(filepath.Join(b.dir, "new"), 0o755); err != nil {
			t.Fatal(err)
		}
		b.write("new/r.lua", after)
		b.want(after)
		if n := b.n.followed(); n != 1 {
			t.Errorf("the folder is not followed: %d", n)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, true)
		b.w.Close()
		b.w.Close()
		if !b.n.closed {
			t.Error("the notifier is open")
		}
		b.write("r.lua", after)
		b.want()
		unused := newWatcher(b.path, before, nil, nil)
		unused.Close()
		unused.Run() // ends at once
	})
}

// The real file system and real notifications, in real time.
func TestRealFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.lua")
	if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 8)
	w, err := New(path, before, func(text string, err error) {
		if err != nil {
			text = err.Error()
		}
		heard <- text
	})
	if err != nil {
		t.Fatal(err)
	}
	go w.Run()
	defer w.Close()
	for _, text := range []string{after, before, after} {
		tmp := path + ".tmp"
		if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, path); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != text {
			t.Fatalf("heard %q, want %q", got, text)
		}
	}
	if _, err := New("", "", nil); err == nil || !strings.Contains(err.Error(), "embedded") {
		t.Errorf("%v", err)
	}
}
