---@meta
-- Generated from scripting/api: what a router sees and may do, for editors that
-- speak LuaLS. tokenrouter routers --types DIR writes it beside your routers.
-- Write ---@param r Row above function route(r), and r. completes.

---@alias Role "small"|"middle"|"large"|string

---@class Destination
---@class Action
---@class Verdict

--- One decode step of one request: what route and send are given. It may be read only during the call.
---@class Row
---@field model Role # role of the model that made the step
---@field token integer # id of the candidate
---@field text string # text of the candidate; a fragment of UTF-8 where a token is one
---@field entropy number # H = -sum p ln p, in nats
---@field entropy_norm number # H / ln V, between 0 and 1; V is the number of logits
---@field top1 number # the largest probability
---@field top2 number # the second largest probability
---@field margin number # `top1 - top2`
---@field logsumexp number # ln sum exp(logit)
---@field topk fun(n?: integer): Candidate[] # the `n` most likely tokens, falling: a list of `{ token, text, prob, logprob }`. A row carries five, more is a fault; `r.topk()` is all of them
---@field pos integer # position of the candidate; the prompt's first token is 0
---@field emitted integer # length that has been emitted: the lowest position that `TRUNCATE` may go back to
---@field step integer # new tokens written so far, by anybody; the candidate is not among them
---@field is_prefill boolean # true at the first candidate that this subserver draws for the request, however its prompt was fed
---@field first boolean # true at the first position behind the prompt
---@field last boolean # true if committing the candidate would end the answer: it is an end token, or the last one allowed
---@field ready integer # this subserver: requests that could be in its next batch. Depends on timing
---@field batch integer # this subserver: rows of its last batch. Depends on timing
---@field load fun(role: Role|integer|Destination): Load # another subserver: `{ ready, batch, age_ms }`. `age_ms` tells how old the numbers are; it is `math.huge` while nothing has been heard. Depends on timing
---@field state table # a table of yours that travels with the request
---@field fields table # the table that the sender's `send` gave, the same at every step until the request is handed on; empty without
---@field random fun(k?: integer): number # the `k`-th draw at this position, uniform in [0, 1); `k` is 0 unless given
---@field score fun(head: string): number # the probability that a trained head gives, 0 to 1. Needs models that compute
---@field peers integer # how many subservers there are

--- A message that hands a request over: what receive is given.
---@class Message
---@field from Role # role of the sender
---@field status "new"|"alive" # `"new"` where this subserver has not had the request before, else `"alive"`
---@field loc integer # the length that the sender believes to be held here; the suffix begins at that position
---@field count integer # number of ids in the suffix
---@field suffix integer[] # the ids themselves, as a list
---@field token fun(i: integer): integer # the `i`-th of them, from 1
---@field budget integer # the ceiling that `send` gave; 0 is none
---@field fields table # the fields that `send` gave; empty without
---@field state table # the request's `r.state`, to be read

--- What this subserver holds of a request: the second argument of receive.
---@class Held
---@field model Role # role of this subserver
---@field prompt_len integer # length of the prompt
---@field held integer # how many tokens of the request are held here
---@field token fun(pos: integer): integer # the id at a position, from 0

--- A token that a step might have drawn.
---@class Candidate
---@field token integer # its id
---@field text string # its text
---@field prob number # its probability
---@field logprob number # the logarithm of that

--- How full a subserver is.
---@class Load
---@field ready integer # requests that could be in the next batch
---@field batch integer # rows of the last one
---@field age_ms number # age of both numbers in milliseconds

--- What send may give.
---@class Sent
---@field budget integer? # a ceiling on the tokens that the destination may write, 1 or more
---@field fields table? # what is `r.fields` there

--- What param is told of a knob.
---@class KnobOptions
---@field default number # the value until somebody moves the knob
---@field min number? # least value, 0 unless given
---@field max number? # largest value, 1 unless given
---@field help string? # what the board says of it
---@field head string? # a trained head: the threshold of its manifest is the default in place of `default`, where it has one

--- go on at this subserver; so does `0`
---@type Destination
STAY = nil

--- the front; there it is the same as `STAY`
---@type Destination
HOME = nil

--- the default: the candidate is committed; the destination writes the next position
---@type Action
KEEP = nil

--- the candidate is discarded; the destination writes the *same* position
---@type Action
DROP = nil

--- the candidate is discarded, and so is what was written from position `pos` on; the destination writes `pos`. Only with `hold`
---@param pos integer
---@return Action
function TRUNCATE(pos) end

--- the default: the suffix is taken over, then a step is made
---@type Verdict
COMMIT = nil

--- `ids` are committed here before the step; they begin with what the suffix brings
---@param ids integer[]
---@return Verdict
function APPEND(ids) end

--- the subserver of a role, or of an index: `to(0)` is `HOME`
---@param where Role|integer|Destination
---@return Destination
function to(where) end

--- declares a knob and gives the function that reads it; at the top of the file
---@param name string
---@param options KnobOptions
---@return fun(): number
function param(name, options) end

--- keeps the newest `n` tokens back, so that they can be taken back; at the top of the file, once
---@param n integer
function hold(n) end

--- the roles in order: `roles[1]` is `"small"`, `roles[#roles]` is `"large"`
---@type Role[]
roles = nil

-- Written by the router.

--- After every decode step, for each request in it: who makes the next step, and what becomes of the candidate. Required.
---@param r Row
---@return Destination|integer, Action?
function route(r) end

--- When route has chosen another subserver: what travels along. Optional.
---@param req Row
---@param dest Role
---@return Sent?
function send(req, dest) end

--- When a message hands a request over, before the first step here. Optional.
---@param msg Message
---@param req Held
---@return Verdict?
function receive(msg, req) end
