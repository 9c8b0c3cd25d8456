-- collm_no_weights.lua: Co-LLM's rule without its head; 1 - top1 stands in for it.
-- Not Co-LLM: the probability of deferring is that of all tokens but the most
-- likely one. For models that no head was trained for.

local threshold = param("threshold", { default = 0.5, min = 0, max = 1,
  help = "1 - top1 above which the large model writes a token" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if 1 - r.top1 > threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
