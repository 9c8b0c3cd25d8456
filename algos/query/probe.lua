-- query_probe.lua: the small model's first tokens tell who writes the whole answer.
-- Where their mean entropy is high, they are cut and the large model answers from
-- the first position on.

hold(31)                                               -- what may be cut is not shown yet

local threshold = param("threshold", { default = 0.1, min = 0, max = 4,
  help = "mean nats of the probe at which the large model answers" })
local tokens = param("tokens", { default = 16, min = 1, max = 32,
  help = "tokens of the probe" })

function route(r)
  if r.model ~= "small" then return r.fields.answer and STAY or HOME end
  local n, length = r.step + 1, math.floor(tokens())   -- the candidate is the n-th token
  if n > length then return STAY end                   -- decided: the small model's
  local s = r.state
  s.sum = (s.sum or 0) + r.entropy
  if n < length and not r.last then return STAY end
  local mean, start = s.sum / n, r.pos - r.step        -- start: of the answer
  r.state = nil
  if mean < threshold() or start < r.emitted then return STAY end
  return to("large"), TRUNCATE(start)
end

function send(req, dest)
  if dest == "large" then return { fields = { answer = true } } end
end
