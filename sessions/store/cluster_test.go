package store

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"tokenrouter/runtime/sched"
)

// What a manifest says of its cores is all that their configuration has, so a
// field that is added there and not here is found; and cores are made of it.
func TestCluster(t *testing.T) {
	m := Manifest{
		Format: ManifestVersion, Seats: 8, KVTokens: 4096,
		Models: []Model{{Hash: "a1", Vocab: "f0"}, {Hash: "b2", Vocab: "f0"}, {Hash: "a1", Vocab: "f1"}},
		Core: Core{
			Block: 32, Chunk: 64, Budget: 128, NoPrefix: true, Overcommit: 150, MaxActive: 3, Resubmit: true, Timeout: 5e9,
		},
	}
	cfgs, err := m.Cluster()
	if err != nil || len(cfgs) != 3 {
		t.Fatalf("%v, %v", cfgs, err)
	}
	for i, cfg := range cfgs {
		v := reflect.ValueOf(cfg)
		for j := range v.NumField() {
			if name := v.Type().Field(j).Name; v.Field(j).IsZero() && (name != "Self" || i > 0) {
				t.Errorf("core %d: %s is not set", i, name)
			}
		}
		if _, err := sched.New(cfg); err != nil || int(cfg.Self) != i || len(cfg.Seats) != 3 || cfg.KVTokens[i] != 4096 {
			t.Errorf("core %d: %+v: %v", i, cfg, err)
		}
	}
	if a, b, c := cfgs[0].Domain, cfgs[1].Domain, cfgs[2].Domain; a == b || b == c || a == c {
		t.Errorf("domains %x, %x, %x are not all different", a, b, c)
	}
	// The same for ever: cores of recorded sessions were told this number.
	if got := (&Model{Hash: "ab", Vocab: "c"}).Domain(); got != 0xe71fa2190541574b {
		t.Errorf("a domain is %#x", got) // FNV-1a, 64 bits, of "abc"
	}
	for want, m := range map[string]Manifest{
		"format 1":        {Format: 1, Models: m.Models},
		"names no models": {Format: ManifestVersion},
	} {
		if _, err := m.Cluster(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Sessions of the versions before open, and their cores are set up as they were:
// nothing that came later is switched on.
func TestOlderManifests(t *testing.T) {
	for version, wantErr := range map[string]string{"1": "format 1", "2": "", "3": ""} {
		s := newSession(t, Options{Vocab: vocab})
		if err := s.Close("done"); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(s.Path(), manifestName)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, []byte(`"format": 5`), []byte(`"format": `+version), 1)
		for _, later := range []string{"path", "weights", "kv", "kernels"} { // of version 4
			b = regexp.MustCompile(`,\n *"`+later+`": "[^"]*"`).ReplaceAll(b, nil)
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Open(s.Path())
		if err != nil {
			t.Fatalf("version %s: %v", version, err)
		}
		cfgs, err := o.Manifest.Cluster()
		if wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), wantErr) {
				t.Errorf("version %s: %v, want %q", version, err, wantErr)
			}
			continue
		}
		if err != nil || len(cfgs) != len(o.Manifest.Models) {
			t.Fatalf("version %s: %v, %v", version, cfgs, err)
		}
		if m := &o.Manifest; m.Machine.Kernels != "" || m.Models[0].Weights != "" || m.Models[1].Path != "" {
			t.Errorf("version %s: %+v on %+v", version, m.Models, m.Machine)
		}
		for _, cfg := range cfgs {
			if cfg.Block != 0 || cfg.MaxActive != 0 || cfg.Resubmit {
				t.Errorf("version %s: %+v", version, cfg)
			}
		}
	}
}
