-- me.lua: before every token, the model that writes it is drawn: m ~ Cat(weights).
-- Mixture-model-like ensemble (ME), arXiv 2605.00419.

local weights = {}
for _, role in ipairs({ "small", "middle", "large" }) do
  weights[role] = param(role, { default = 1, min = 0, max = 10,
    help = "weight of the " .. role .. " model in the draw" })
end

local function draw(u)                                 -- u is uniform in [0, 1)
  local total, last = 0, STAY
  for _, role in ipairs(roles) do total = total + weights[role]() end
  local x = u * total
  for _, role in ipairs(roles) do
    local w = weights[role]()
    if w > 0 then
      if x < w then return to(role) end
      x, last = x - w, to(role)
    end
  end
  return last
end

function route(r)
  -- Every request begins at home, so the first token's writer is drawn now.
  if r.first and r.model == "small" then
    local writer = draw(r.random(0))
    if writer ~= HOME and writer ~= STAY then return writer, DROP end
  end
  return draw(r.random(1))                             -- who writes the next one
end
