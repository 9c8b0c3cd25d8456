-- random.lua: a coin decides who writes each token, whatever the models say.
-- The baseline that every router has to beat at the same share of large tokens.

local share = param("share", { default = 0.2, min = 0, max = 1,
  help = "share of tokens that the large model writes" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.random(0) < share() then return to("large"), DROP end
  return STAY
end
