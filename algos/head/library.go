package head

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tokenrouter/algos/head/shipped"
	"tokenrouter/scripting/near"
)

// Library finds heads by name: those in a folder, and behind them the shipped ones.
// A head is loaded once and shared by all who ask; what a session uses does not
// change under it. It may be used by several goroutines.
type Library struct {
	dir     string
	shipped fs.FS
	options Options

	mu     sync.Mutex
	held   map[string]*held
	warned map[string]bool
}

// held is a head that was asked for.
type held struct {
	once sync.Once
	head *Head
	err  error
	from [2]stamp // of the two files, zero for a shipped head
}

// maxHeld is how many heads are held before those that could not be loaded are
// forgotten.
const maxHeld = 256

// stamp tells whether a file is another than it was.
type stamp struct {
	size int64
	time time.Time
}

// NewLibrary is the heads in a folder, which need not exist, and the shipped ones.
func NewLibrary(dir string, o Options) *Library {
	return &Library{dir: dir, shipped: shipped.Files, options: o, held: map[string]*held{}, warned: map[string]bool{}}
}

// Dir is the folder.
func (l *Library) Dir() string { return l.dir }

// Names lists the heads that there are, in order: those of the folder and the
// shipped ones that it does not hide.
func (l *Library) Names() []string {
	names := append(list(os.DirFS(l.dir)), list(l.shipped)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// list names the heads in the root of a file system.
func list(fsys fs.FS) (names []string) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil // a folder that is not there has no heads
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), manifestExt); ok && !e.IsDir() && checkName(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// Manifest reads what is told about a head, without its weights. Shipped says that
// it is one of those.
func (l *Library) Manifest(name string) (m Manifest, isShipped bool, err error) {
	if err := l.known(name); err != nil {
		return m, false, err
	}
	if l.inFolder(name) {
		m, err = readManifest(os.DirFS(l.dir), name)
		return m, false, err
	}
	m, err = readManifest(l.shipped, name)
	return m, true, err
}

// Get returns a head, loaded when it is first asked for.
func (l *Library) Get(name string) (*Head, error) {
	h := l.get(name)
	return h.head, h.err
}

func (l *Library) get(name string) *held {
	l.mu.Lock()
	h := l.held[name]
	if h == nil {
		h = &held{}
		l.held[name] = h
	}
	l.mu.Unlock()
	h.once.Do(func() {
		head, from, err := l.load(name)
		l.mu.Lock()
		h.head, h.from, h.err = head, from, err
		if err != nil && len(l.held) > maxHeld && l.held[name] == h {
			delete(l.held, name) // a router may make up names without end
		}
		l.mu.Unlock()
	})
	return h
}

// Fresh is Get for who is about to use a head by a name that a person has written:
// one that could not be loaded is tried again, and one whose files have changed
// since is an error.
func (l *Library) Fresh(name string) (*Head, error) {
	h := l.get(name)
	if h.err != nil {
		l.mu.Lock()
		if l.held[name] == h { // nobody has tried again meanwhile
			delete(l.held, name)
		}
		l.mu.Unlock()
		return l.Get(name)
	}
	if h.from != l.stamps(name) {
		return nil, fmt.Errorf("the files of the head %s have changed since it was loaded: begin a new run to use them, or save the new head by another name", name)
	}
	return h.head, nil
}

func (l *Library) load(name string) (*Head, [2]stamp, error) {
	if err := l.known(name); err != nil {
		return nil, [2]stamp{}, err
	}
	if !l.inFolder(name) {
		h, err := loadFS(l.shipped, name, l.options)
		return h, [2]stamp{}, err
	}
	from := l.stamps(name)
	h, err := LoadWith(filepath.Join(l.dir, name), l.options)
	return h, from, err
}

// stamps are those of a head's files, zero where they are not in the folder.
func (l *Library) stamps(name string) (s [2]stamp) {
	for i, ext := range []string{weightsExt, manifestExt} {
		if info, err := os.Stat(filepath.Join(l.dir, name+ext)); err == nil {
			s[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return s
}

// known refuses what no head is called.
func (l *Library) known(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if l.inFolder(name) {
		return nil
	}
	if _, err := fs.Stat(l.shipped, name+manifestExt); err == nil {
		return nil
	}
	names := l.Names()
	for _, ext := range pickles {
		if _, err := os.Stat(filepath.Join(l.dir, name+ext)); err == nil {
			_, err := base(filepath.Join(l.dir, name+ext))
			return err
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("there is no head %q; %s has none: train one with tokenrouter head train, or name another folder with --heads", name, l.dir)
	}
	return fmt.Errorf("there is no head %q%s (in %s; --heads names another folder)", name, near.List(name, "heads", names), l.dir)
}

// inFolder says whether the folder has a file of a head. A link that leads nowhere
// is one: the shipped head is not what it stands for.
func (l *Library) inFolder(name string) bool {
	_, err := os.Lstat(filepath.Join(l.dir, name+manifestExt))
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Lstat(filepath.Join(l.dir, name+weightsExt))
	}
	return err == nil
}

// Used lists the heads that were loaded, in the order of their names.
func (l *Library) Used() (heads []*Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held {
		if h.head != nil {
			heads = append(heads, h.head)
		}
	}
	slices.SortFunc(heads, func(a, b *Head) int { return strings.Compare(a.Name(), b.Name()) })
	return heads
}

// warnOnce says whether a head is to be warned of: the first time.
func (l *Library) warnOnce(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := !l.warned[name]
	l.warned[name] = true
	return first
}
