-- hysteresis.lua: one threshold of entropy brings the large model in, a lower ends it.
-- A Schmitt trigger on the entropy, in nats, of the model that is writing: R-Stitch
-- with two thresholds.

local up = param("up", { default = 0.45, min = 0, max = 4,
  help = "the small model's nats at which the large one takes over" })
local down = param("down", { default = 0.1, min = 0, max = 4,
  help = "the large model's nats at which it gives control back" })

function route(r)
  if r.model == "small" then
    if r.entropy >= up() then return to("large"), DROP end
    return STAY
  end
  if r.entropy <= down() then return HOME end          -- its own token is kept
  return STAY
end
