-- chance.lua: a Markov chain decides, whatever the models say; plan computes with it.
-- From each model a request goes to each other with a probability of its own.

local ways = { small = {}, middle = {}, large = {} }   -- in the order they are tried
local here = {}
for _, role in ipairs(roles) do here[role] = true end

local function way(from, dest, default, up)
  local p = param(from .. "_" .. dest, { default = default, min = 0, max = 1,
    help = "probability that a step of the " .. from .. " model is followed by the "
      .. dest .. " one" })
  if here[from] and here[dest] then
    table.insert(ways[from], { p = p, role = dest, up = up })
  end
end

-- Where two add up to more than 1, the second has what the first leaves.
way("small", "large", 0.35, true)
way("small", "middle", 0.2, true)
way("middle", "large", 0.2, true)
way("middle", "small", 0.8)
way("large", "middle", 0)
way("large", "small", 1)

local replace = param("replace", { default = 1, min = 0, max = 1,
  help = "1: a token that goes to a larger model is written anew there; 0: it is kept" })

function route(r)
  local u = r.random(0)                                -- uniform in [0, 1)
  for _, w in ipairs(ways[r.model]) do
    local p = w.p()
    if u < p then
      if w.up and replace() >= 0.5 then return to(w.role), DROP end
      return to(w.role)                                -- keep the token, go on there
    end
    u = u - p
  end
  return STAY
end
