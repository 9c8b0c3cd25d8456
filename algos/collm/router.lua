-- collm.lua: the base model defers where a trained row of its output head says so.
-- Co-LLM, ACL 2024, arXiv 2403.03870, strategy defer, one token a call: large iff
-- sigmoid(d . h) > threshold. The head "collm" is that row d.

local threshold = param("threshold", { default = 0.5, head = "collm", min = 0, max = 1,
  help = "probability of deferring above which the large model writes a token" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.score("collm") > threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
