-- collm_draft.lua: Co-LLM with drafts: the base model writes k tokens before a check.
-- arXiv 2403.03870, tokens_per_call = k: at the first of the k that is over the
-- threshold the draft is cut, and the large model writes that position.

hold(15)                                               -- a draft is shown when it stands

local threshold = param("threshold", { default = 0.5, head = "collm", min = 0, max = 1,
  help = "probability of deferring above which the large model writes a token" })
local k = param("k", { default = 10, min = 1, max = 16,
  help = "tokens of a draft; 1 is collm.lua" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then a new draft
  local s = r.state
  s.n = (s.n or 0) + 1
  if not s.over and r.score("collm") > threshold() then s.over = r.pos end
  if s.n < math.floor(k()) and not r.last then return STAY end
  local over = s.over                                  -- the draft ends here
  r.state = nil
  if over and over >= r.emitted then return to("large"), TRUNCATE(over) end
  return STAY
end
