-- window.lua: where the mean entropy of a window is high, its worst token is redone.
-- The text is cut back to the position of the highest entropy in the window (the
-- first of equals), and the large model writes on from there.

hold(15)                                               -- what may be cut is not shown yet

local threshold = param("threshold", { default = 0.2, min = 0, max = 4,
  help = "mean nats of the window at which it is cut back" })
local window = param("window", { default = 8, min = 1, max = 16,
  help = "tokens of the window" })
local tokens = param("tokens", { default = 8, min = 1, max = 64,
  help = "tokens that the large model writes at a time" })

function route(r)
  if r.model ~= "small" then
    return r.fields.span and STAY or HOME              -- until the budget is used up
  end
  local s = r.state
  local h = s.at == r.pos - 1 and s.h or {}            -- entropies up to here
  table.insert(h, r.entropy)
  while #h > math.floor(window()) do table.remove(h, 1) end
  s.h, s.at = h, r.pos
  if #h < math.floor(window()) then return STAY end
  local sum, top = 0, 1
  for i, x in ipairs(h) do
    sum = sum + x
    if x > h[top] then top = i end
  end
  if sum / #h < threshold() then return STAY end
  s.h, s.at = nil, nil
  return to("large"), TRUNCATE(math.max(r.pos - #h + top, r.emitted))
end

function send(req, dest)
  if dest == "large" then
    return { budget = math.floor(tokens()), fields = { span = true } }
  end
end
