package api

import "slices"

// Entry is a global, or a field of a value.
type Entry struct {
	Name string
	Type string // of a value, in the notation of LuaLS; empty for a function
	Doc  string // a sentence or two of Markdown

	Params  []Param  // of a function
	Returns []string // types of what it gives
}

// Param is a parameter of a function.
type Param struct {
	Name string // ends in ? where it may be left out
	Type string
}

// IsFunction says that an entry is called.
func (e *Entry) IsFunction() bool { return e.Type == "" }

// Class is a kind of value that a router is given or gives.
type Class struct {
	Name   string // in annotations: Row
	Var    string // what the documentation calls one: r
	Doc    string
	Fields []Entry
}

// Names are the names of entries, in their order.
func Names(entries []Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.Name
	}
	return out
}

// Globals are the names of the interface, in the order of lists and suggestions.
func Globals() []Entry { return slices.Clone(globals) }

// Row are the fields of r in route, and of req in send.
func Row() []Entry { return slices.Clone(row) }

// Message are the fields of msg in receive.
func Message() []Entry { return slices.Clone(message) }

// Held are the fields of req in receive.
func Held() []Entry { return slices.Clone(held) }

// Classes are all kinds of values.
func Classes() []Class {
	return []Class{
		{"Row", "r", "One decode step of one request: what route and send are given. It may be read only during the call.", Row()},
		{"Message", "msg", "A message that hands a request over: what receive is given.", Message()},
		{"Held", "req", "What this subserver holds of a request: the second argument of receive.", Held()},
		{"Candidate", "", "A token that a step might have drawn.", slices.Clone(candidate)},
		{"Load", "", "How full a subserver is.", slices.Clone(load)},
		{"Sent", "", "What send may give.", slices.Clone(sent)},
		{"KnobOptions", "", "What param is told of a knob.", slices.Clone(knob)},
	}
}

// Hooks are the functions of a router that the runtime calls.
func Hooks() []Entry { return slices.Clone(hooks) }

var hooks = []Entry{
	{Name: "route", Doc: "After every decode step, for each request in it: who makes the next step, and what becomes of the candidate. Required.", Params: []Param{{"r", "Row"}}, Returns: []string{"Destination|integer", "Action?"}},
	{Name: "send", Doc: "When route has chosen another subserver: what travels along. Optional.", Params: []Param{{"req", "Row"}, {"dest", "Role"}}, Returns: []string{"Sent?"}},
	{Name: "receive", Doc: "When a message hands a request over, before the first step here. Optional.", Params: []Param{{"msg", "Message"}, {"req", "Held"}}, Returns: []string{"Verdict?"}},
}

var globals = []Entry{
	{Name: "STAY", Type: "Destination", Doc: "go on at this subserver; so does `0`"},
	{Name: "HOME", Type: "Destination", Doc: "the front; there it is the same as `STAY`"},
	{Name: "KEEP", Type: "Action", Doc: "the default: the candidate is committed; the destination writes the next position"},
	{Name: "DROP", Type: "Action", Doc: "the candidate is discarded; the destination writes the *same* position"},
	{Name: "TRUNCATE", Doc: "the candidate is discarded, and so is what was written from position `pos` on; the destination writes `pos`. Only with [`hold`](#hold-and-truncate-taking-tokens-back)", Params: []Param{{"pos", "integer"}}, Returns: []string{"Action"}},
	{Name: "COMMIT", Type: "Verdict", Doc: "the default: the suffix is taken over, then a step is made"},
	{Name: "APPEND", Doc: "`ids` are committed here before the step; they begin with what the suffix brings", Params: []Param{{"ids", "integer[]"}}, Returns: []string{"Verdict"}},
	{Name: "to", Doc: "the subserver of a role, or of an index: `to(0)` is `HOME`", Params: []Param{{"where", "Role|integer|Destination"}}, Returns: []string{"Destination"}},
	{Name: "param", Doc: "declares a [knob](#knobs) and gives the function that reads it; at the top of the file", Params: []Param{{"name", "string"}, {"options", "KnobOptions"}}, Returns: []string{"fun(): number"}},
	{Name: "hold", Doc: "keeps the newest `n` tokens back, so that they can be taken back; at the top of the file, once", Params: []Param{{"n", "integer"}}},
	{Name: "roles", Type: "Role[]", Doc: "the roles in order: `roles[1]` is `\"small\"`, `roles[#roles]` is `\"large\"`"},
}

var row = []Entry{
	{Name: "model", Type: "Role", Doc: "role of the model that made the step"},
	{Name: "token", Type: "integer", Doc: "id of the candidate"},
	{Name: "text", Type: "string", Doc: "text of the candidate; a fragment of UTF-8 where a token is one"},
	{Name: "entropy", Type: "number", Doc: "H = -sum p ln p, in nats"},
	{Name: "entropy_norm", Type: "number", Doc: "H / ln V, between 0 and 1; V is the number of logits"},
	{Name: "top1", Type: "number", Doc: "the largest probability"},
	{Name: "top2", Type: "number", Doc: "the second largest probability"},
	{Name: "margin", Type: "number", Doc: "`top1 - top2`"},
	{Name: "logsumexp", Type: "number", Doc: "ln sum exp(logit)"},
	{Name: "topk", Doc: "the `n` most likely tokens, falling: a list of `{ token, text, prob, logprob }`. A row carries five, more is a fault; `r.topk()` is all of them", Params: []Param{{"n?", "integer"}}, Returns: []string{"Candidate[]"}},
	{Name: "pos", Type: "integer", Doc: "position of the candidate; the prompt's first token is 0"},
	{Name: "emitted", Type: "integer", Doc: "length that has been emitted: the lowest position that `TRUNCATE` may go back to"},
	{Name: "step", Type: "integer", Doc: "new tokens written so far, by anybody; the candidate is not among them"},
	{Name: "is_prefill", Type: "boolean", Doc: "true at the first candidate that this subserver draws for the request, however its prompt was fed"},
	{Name: "first", Type: "boolean", Doc: "true at the first position behind the prompt"},
	{Name: "last", Type: "boolean", Doc: "true if committing the candidate would end the answer: it is an end token, or the last one allowed"},
	{Name: "ready", Type: "integer", Doc: "this subserver: requests that could be in its next batch. Depends on timing"},
	{Name: "batch", Type: "integer", Doc: "this subserver: rows of its last batch. Depends on timing"},
	{Name: "load", Doc: "another subserver: `{ ready, batch, age_ms }`. `age_ms` tells how old the numbers are; it is `math.huge` while nothing has been heard. Depends on timing", Params: []Param{{"role", "Role|integer|Destination"}}, Returns: []string{"Load"}},
	{Name: "state", Type: "table", Doc: "a table of yours that [travels with the request](#rstate)"},
	{Name: "fields", Type: "table", Doc: "the table that the sender's `send` gave, the same at every step until the request is handed on; empty without"},
	{Name: "random", Doc: "the `k`-th draw at this position, uniform in [0, 1); `k` is 0 unless given", Params: []Param{{"k?", "integer"}}, Returns: []string{"number"}},
	{Name: "score", Doc: "the probability that a [trained head](#rscore-trained-heads) gives, 0 to 1. Needs models that compute", Params: []Param{{"head", "string"}}, Returns: []string{"number"}},
	{Name: "peers", Type: "integer", Doc: "how many subservers there are"},
}

var message = []Entry{
	{Name: "from", Type: "Role", Doc: "role of the sender"},
	{Name: "status", Type: `"new"|"alive"`, Doc: "`\"new\"` where this subserver has not had the request before, else `\"alive\"`"},
	{Name: "loc", Type: "integer", Doc: "the length that the sender believes to be held here; the suffix begins at that position"},
	{Name: "count", Type: "integer", Doc: "number of ids in the suffix"},
	{Name: "suffix", Type: "integer[]", Doc: "the ids themselves, as a list"},
	{Name: "token", Doc: "the `i`-th of them, from 1", Params: []Param{{"i", "integer"}}, Returns: []string{"integer"}},
	{Name: "budget", Type: "integer", Doc: "the ceiling that `send` gave; 0 is none"},
	{Name: "fields", Type: "table", Doc: "the fields that `send` gave; empty without"},
	{Name: "state", Type: "table", Doc: "the request's `r.state`, to be read"},
}

var held = []Entry{
	{Name: "model", Type: "Role", Doc: "role of this subserver"},
	{Name: "prompt_len", Type: "integer", Doc: "length of the prompt"},
	{Name: "held", Type: "integer", Doc: "how many tokens of the request are held here"},
	{Name: "token", Doc: "the id at a position, from 0", Params: []Param{{"pos", "integer"}}, Returns: []string{"integer"}},
}

var candidate = []Entry{
	{Name: "token", Type: "integer", Doc: "its id"},
	{Name: "text", Type: "string", Doc: "its text"},
	{Name: "prob", Type: "number", Doc: "its probability"},
	{Name: "logprob", Type: "number", Doc: "the logarithm of that"},
}

var load = []Entry{
	{Name: "ready", Type: "integer", Doc: "requests that could be in the next batch"},
	{Name: "batch", Type: "integer", Doc: "rows of the last one"},
	{Name: "age_ms", Type: "number", Doc: "age of both numbers in milliseconds"},
}

var sent = []Entry{
	{Name: "budget", Type: "integer?", Doc: "a ceiling on the tokens that the destination may write, 1 or more"},
	{Name: "fields", Type: "table?", Doc: "what is `r.fields` there"},
}

var knob = []Entry{
	{Name: "default", Type: "number", Doc: "the value until somebody moves the knob"},
	{Name: "min", Type: "number?", Doc: "least value, 0 unless given"},
	{Name: "max", Type: "number?", Doc: "largest value, 1 unless given"},
	{Name: "help", Type: "string?", Doc: "what the board says of it"},
	{Name: "head", Type: "string?", Doc: "a trained head: the threshold of its manifest is the default in place of `default`, where it has one"},
}
