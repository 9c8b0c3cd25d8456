-- Holds tokens back, takes some back at random, and lets every model write runs.
hold(6)

function route(r)
  local s = r.state
  if r.model ~= "small" then
    if r.random(0) < 0.4 then return HOME end
    return STAY
  end
  local at = math.max(r.emitted, (s.cut or 0) + 1, r.pos - 1 - math.floor(5 * r.random(1)))
  if r.random(0) < 0.15 and at < r.pos then
    s.cut = at
    return to("large"), TRUNCATE(at)
  end
  if r.random(2) < 0.1 then return to("large"), DROP end
  if r.random(3) < 0.1 then return 1 end
  return STAY
end
