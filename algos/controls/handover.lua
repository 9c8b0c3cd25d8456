-- handover.lua: an unsure token brings the large model in for a fixed span of tokens.
-- R2R's rule with a longer hand-over: fewer switches, a larger share.

local threshold = param("threshold", { default = 0.45, min = 0, max = 4,
  help = "nats of entropy at which the large model takes over" })
local tokens = param("tokens", { default = 8, min = 1, max = 64,
  help = "tokens that the large model writes at a time" })

function route(r)
  if r.model ~= "small" then
    return r.fields.span and STAY or HOME              -- until the budget is used up
  end
  if r.entropy >= threshold() then return to("large"), DROP end
  return STAY
end

function send(req, dest)
  if dest == "large" then
    return { budget = math.floor(tokens()), fields = { span = true } }
  end
end
