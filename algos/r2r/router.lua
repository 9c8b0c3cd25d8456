-- r2r.lua: the large model rewrites the tokens that the small one is unsure of.
-- R2R, arXiv 2505.21600, entropy strategy: large iff H >= threshold, in nats.

local threshold = param("threshold", { default = 0.45, min = 0, max = 4,
  help = "nats of entropy at which a token goes to the large model" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.entropy >= threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
