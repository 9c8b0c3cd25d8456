package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseArrivals(t *testing.T) {
	for form, want := range map[string]string{
		"poisson:2.5":              "poisson:2.5",
		"uniform:1e-3":             "uniform:0.001",
		"gamma:2":                  "gamma:2,cv=2",
		"gamma:2,cv=0.5":           "gamma:2,cv=0.5",
		"gamma:2, cv=0.5":          "gamma:2,cv=0.5",
		"mmpp:8":                   "mmpp:8,r=3,h=0.2,tc=2s",
		"mmpp:8,tc=500ms,r=6":      "mmpp:8,r=6,h=0.2,tc=500ms",
		"mmpp:8,h=0.5,r=6,tc=1m5s": "mmpp:8,r=6,h=0.5,tc=1m5s",
	} {
		if got := made(t)(ParseArrivals(form, 1)).String(); got != want {
			t.Errorf("%s became %s, want %s", form, got, want)
		}
	}
	if a, err := ParseArrivals("closed", 1); a != nil || err != nil {
		t.Errorf("closed gave %v, %v", a, err)
	}
}

func TestParseArrivalsRefuses(t *testing.T) {
	for form, want := range map[string]string{
		"":                       "give closed, poisson:2.5",
		"open":                   "give closed, poisson:2.5",
		"closed:3":               "give closed, poisson:2.5",
		"poisson":                "give closed, poisson:2.5",
		"weibull:2":              "give closed, poisson:2.5",
		"poisson:":               `"" is not a rate in arrivals a second, such as poisson:2.5`,
		"poisson:fast":           `"fast" is not a rate`,
		"poisson:0":              "a rate of 0 arrivals a second is outside",
		"poisson:NaN":            "a rate of NaN arrivals a second is outside",
		"poisson:2,cv=2":         `poisson takes a rate and nothing else, not "cv=2"`,
		"gamma:2,r=2":            `gamma knows no "r"; it takes cv`,
		"gamma:2,cv=big":         "cv=big is not a number",
		"gamma:2,cv":             "cv= is not a number",
		"gamma:2,cv=1,cv=2":      "cv is given twice",
		"gamma:2,cv=0":           "cv=0 is outside 0.01 to 10",
		"mmpp:2,x=1":             `mmpp knows no "x"; it takes h, r, tc`,
		"mmpp:2,tc=2":            "tc=2 is not a time such as 2s",
		"mmpp:2,h=2":             "h=2 is outside",
		"mmpp:0.01,tc=1ms":       "give tc=100ms or more",
		"trace:":                 "trace: names no file",
		"trace:/no/such/file":    "no such file",
		"trace:/no/file,scale=0": "scale=0 is not a number from 1e-06",
		"trace:/no/file,scale=x": "scale=x is not a number",
	} {
		a, err := ParseArrivals(form, 1)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), `arrivals "`+form) {
			t.Errorf("%q gave %v and error %v, want %s", form, a, err, want)
		}
	}
}

func TestParseArrivalsTrace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a,b.csv")
	if err := os.WriteFile(name, []byte("1\n2\n4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := made(t)(ParseArrivals("trace:"+name+",scale=2", 1))
	for _, want := range []time.Duration{time.Second / 2, time.Second, 2 * time.Second} {
		if at, ok := a.Next(); at != want || !ok {
			t.Errorf("arrival at %s, %v, want %s", at, ok, want)
		}
	}
	if at, ok := a.Next(); ok {
		t.Errorf("a fourth arrival at %s", at)
	}
	if a.Rate() != 1.5 || a.String() != "trace:"+name+",scale=2" {
		t.Errorf("%s at %g/s", a, a.Rate())
	}
}

func FuzzParseArrivals(f *testing.F) {
	for _, form := range []string{"closed", "poisson:2", "gamma:2,cv=3", "mmpp:8,r=3,h=0.2,tc=2s", "uniform:1e9", "gamma:,", "mmpp:1,,"} {
		f.Add(form)
	}
	f.Fuzz(func(t *testing.T, form string) {
		if strings.HasPrefix(form, "trace:") {
			t.Skip() // would open any file
		}
		a, err := ParseArrivals(form, 1)
		if err != nil || a == nil {
			if err == nil && form != "closed" {
				t.Fatalf("%q gave nothing and no error", form)
			}
			return
		}
		if again, err := ParseArrivals(a.String(), 1); err != nil || again.String() != a.String() {
			t.Fatalf("%q became %s, which became %v, %v", form, a, again, err)
		}
		before := time.Duration(0)
		for range 10 {
			at, ok := a.Next()
			if ok && at < before {
				t.Fatalf("%q falls from %s to %s", form, before, at)
			}
			before = at
		}
	})
}
