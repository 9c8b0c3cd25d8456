-- citer_no_weights.lua: CITER's rule without its head; top1 stands in for it.
-- Not CITER: the confidence is the small model's own largest probability, so this
-- is large iff 1 - top1 > 1 - threshold. For models that no head was trained for.

local threshold = param("threshold", { default = 0.9, min = 0, max = 1,
  help = "largest probability below which a token goes to the large model" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.top1 < threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
