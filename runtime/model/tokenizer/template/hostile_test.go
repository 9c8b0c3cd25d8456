package template

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var oneMessage = Vars{Messages: []Message{{"user", "Hi"}}}

// Templates that would not end, or would fill the memory, are stopped by the
// budget before they have made much.
func TestHostile(t *testing.T) {
	repeat := strings.Repeat
	for name, source := range map[string]string{
		"huge range":         "{% for i in range(1000000000000) %}{% endfor %}",
		"largest range":      "{% for i in range(9223372036854775807) %}{% endfor %}",
		"range both ends":    "{% for i in range(-9223372036854775807, 9223372036854775807) %}{% endfor %}",
		"backward range":     "{% for i in range(9223372036854775807, -9223372036854775807, -1) %}{% endfor %}",
		"many small ranges":  "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
		"nested loops":       repeat("{% for i in range(1000) %}", 10) + "x" + repeat("{% endfor %}", 10),
		"filtered loop":      "{% for i in range(100000) if range(100000) %}{% endfor %}",
		"doubling":           "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"doubling by tilde":  "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"doubling a list":    "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"doubling by join":   "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}",
		"doubling a body":    "{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set x %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = x %}{% endfor %}",
		"shared lists":       "{% set ns = namespace(s=['ab']) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
		"shared as JSON":     "{% set ns = namespace(s=['ab']) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}",
		"shared, compared":   "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
		"repetition":         "{{ 'a' * 1000000000000 }}",
		"repeated list":      "{{ [1] * 9223372036854775807 }}",
		"overflow":           "{{ 'abcd' * 4611686018427387905 }}",
		"replace":            "{% set a = 'a' * 1000000 %}{{ a | replace('a', a) }}",
		"replace nothing":    "{% set a = 'a' * 1000000 %}{{ a.replace('', a) }}",
		"join":               "{{ range(100000) | join('x' * 1000000) }}",
		"join method":        "{{ ('x' * 1000000).join(range(100000)) }}",
		"indent":             "{{ 'a\n' * 1000000 | indent(1000000000000) }}",
		"indented JSON":      "{{ [[[1]]] | tojson(indent=1000000000000) }}",
		"strip with a set":   "{% set a = 'a' * 1000000 %}{{ a.strip(a) }}",
		"split":              "{% for i in range(10000) %}{% set x = ('a,' * 100000).split(',') %}{% endfor %}",
		"unique":             "{{ range(200000) | unique | list | length }}",
		"sort":               "{% for i in range(100000) %}{% set x = range(100000) | sort %}{% endfor %}",
		"in a list":          "{% set l = range(100000) %}{% for i in l %}{{ -1 in l }}{% endfor %}",
		"in a string":        "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ 'b' in s }}{% endfor %}",
		"length of a string": "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{{ s | length }}{% endfor %}",
		"character":          "{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{% set c = s[-1] %}{% endfor %}",
		"slices":             "{% set s = range(100000) %}{% for i in s %}{% set x = s[1:] %}{% endfor %}",
		"much output":        "{% for i in range(100000) %}" + repeat("0123456789", 1000) + "{% endfor %}",
		"macro twice":        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(30) }}",
		"macro doubles":      "{% macro m(n) %}{% if n %}{% set x = m(n - 1) %}{{ x }}{{ x }}{% else %}ab{% endif %}{% endmacro %}{{ m(30) }}",
		"conditions":         "{% for i in range(100000) %}" + repeat("{% if a %}{% endif %}", 4000) + "{% endfor %}",
		"map":                "{% for i in range(100000) %}{% set x = range(1000) | map('string') | list %}{% endfor %}",
		"select":             "{% for i in range(100000) %}{% set x = range(1000) | select('odd') | list %}{% endfor %}",
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		text, err := tmpl.Render(oneMessage)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrBudget) || text != "" {
			t.Errorf("%s: %d bytes, error %v", name, len(text), err)
		}
		// The budget counts what matters; small objects of the evaluator come
		// on top, some hundred bytes a step at most.
		if got := after.TotalAlloc - before.TotalAlloc; got > 256<<20 {
			t.Errorf("%s: made %d MiB", name, got>>20)
		}
	}
}

// What is bounded by depth, or refused by name.
func TestRefused(t *testing.T) {
	repeat := strings.Repeat
	for name, c := range map[string]struct{ source, want string }{
		"recursion":        {"\n{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}", "line 2: macros call one another more than 32 deep"},
		"two macros":       {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}", "more than 32 deep"},
		"deep value":       {"{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}", "nested more than 64 deep"},
		"deep equality":    {"{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l == [ns.l] }}", "nested more than 64 deep"},
		"brackets":         {"{{ " + repeat("(", 100000) + repeat(")", 100000) + " }}", "nested more than 64 deep"},
		"nested tags":      {repeat("{% if true %}", 1000) + repeat("{% endif %}", 1000), "tags are nested more than 64 deep"},
		"many tags":        {repeat("{{ a }}", 10000), "more than 8192 tags"},
		"long tag":         {"{{ a" + repeat(" + a", 10000) + " }}", "more than 4096 parts"},
		"long source":      {repeat("a", 300000), "300000 bytes, allowed are 262144"},
		"raised":           {"\n\n{{ raise_exception('Only one system message') }}", "line 3: Only one system message"},
		"include":          {"{% include '/etc/passwd' %}", "include"},
		"import":           {"{% import 'x' as y %}", "import"},
		"from":             {"{% from 'x' import y %}", "from"},
		"extends":          {"{% extends 'x' %}", "extends"},
		"recursive loop":   {"{% for m in messages recursive %}{% endfor %}", "recursive loops are not supported"},
		"filter":           {"a\n{{ 'a' | evil }}", `line 2: the filter "evil" is not known`},
		"test":             {"{{ 'a' is evil }}", `the test "evil" is not known`},
		"filter by name":   {"{{ ['a'] | map('evil') | list }}", `the filter "evil" is not known`},
		"Go method":        {"{{ messages[0].String() }}", "a mapping has no method String"},
		"attribute":        {"{{ ''.__class__.__mro__ }}", "__class__ is undefined"},
		"lost append":      {"{% set l = [] %}{{ l.append(1) }}", "a list has no method append"},
		"write to message": {"{% set messages[0].role = 'x' %}", "set needs a variable"},
		"write to mapping": {"{% set d = {} %}{% set d.x = 1 %}", "d is no namespace"},
		"unclosed tag":     {"a\nb {% if x", "line 2: the tag has no end"},
		"unclosed comment": {"{# x", "the comment has no end"},
		"unclosed string":  {"{{ 'x }}", "a string has no end"},
		"unclosed if":      {"{% if true %}", "Unexpected EOF"},
		"strange":          {"{{ a @ b }}", `'@' is not expected in a tag`},
		"bad escape":       {`{{ '\xzz' }}`, "is no escape"},
		"key":              {"{{ {[1]: 2} }}", "a list cannot be a key"},
		"wrong arguments":  {"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "takes 1 arguments, not 2"},
		"wrong name":       {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "no argument of a name that is given"},
		"kwargs":           {"{% macro m(**k) %}{% endmacro %}", "not supported"},
	} {
		tmpl, err := Parse(c.source)
		if err == nil {
			_, err = tmpl.Render(oneMessage)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// The budget grows with the conversation.
func TestLongConversation(t *testing.T) {
	tmpl, err := Parse(`{%- set ns = namespace(last=0) %}
{%- for m in messages[::-1] %}{%- if m.role == 'user' and not (m.content.startswith('<x>') and m.content.endswith('</x>')) %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content.split('</think>')[-1].lstrip('\n') if '</think>' in m.content else m.content | trim %}
    {{- '<|' + m.role + '|>' + '\n' + content + '<|end|>' + '\n' }}
{%- endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	var v Vars
	size := 0
	for i := range 2000 {
		text := fmt.Sprint(i, strings.Repeat(" word", 1000))
		v.Messages = append(v.Messages, Message{"user", text}, Message{"assistant", "<think>\n</think>\n\n" + text})
		size += 2 * len(text)
	}
	text, err := tmpl.Render(v)
	if err != nil || len(text) < size {
		t.Errorf("%d bytes of %d, error %v", len(text), size, err)
	}
}

// One template serves several conversations at a time.
func TestConcurrent(t *testing.T) {
	cases := goldens(t)
	var wg sync.WaitGroup
	for i := 0; i < len(cases); i += 6 {
		tmpl, err := Parse(cases[i].Source)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases[i : i+6] {
			wg.Go(func() {
				if got, _ := tmpl.Render(c.vars()); got != c.Want {
					t.Errorf("%s: got %q, want %q", c.Source, got, c.Want)
				}
			})
		}
	}
	wg.Wait()
}

func TestDate(t *testing.T) {
	tmpl, err := Parse("{{ strftime_now('%d %b %Y, %A %H:%M %% %j') if strftime_now is defined else 'never' }}")
	if err != nil {
		t.Fatal(err)
	}
	for want, date := range map[string]time.Time{"never": {}, "07 Mar 2026, Saturday 05:06 % 066": time.Date(2026, 3, 7, 5, 6, 0, 0, time.UTC)} {
		if got, err := tmpl.Render(Vars{Date: date}); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// Whatever a file holds, Parse and Render end without a panic of their own.
func FuzzTemplate(f *testing.F) {
	for _, c := range goldens(f) {
		f.Add(c.Source, c.Messages[0][1])
	}
	f.Fuzz(func(t *testing.T, source, content string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		_, err = tmpl.Render(Vars{Messages: []Message{{"user", content}, {"assistant", content}}})
		if err != nil && strings.Contains(err.Error(), "internal fault") {
			t.Fatal(err)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Parse(goldens(b)[0].Source)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(oneMessage); err != nil {
			b.Fatal(err)
		}
	}
}
