-- collm_compose.lua: where Co-LLM defers, both models' distributions are mixed.
-- arXiv 2403.03870, strategy compose: the token is argmax (1 - d) p_base + d p_ref.
-- Ours: the sums go over the five most likely tokens of each; greedy whatever the
-- sampling.

local threshold = param("threshold", { default = 0.5, head = "collm", min = 0, max = 1,
  help = "probability of deferring above which a token is mixed" })

function route(r)
  if r.model ~= "small" then                           -- the large model only advises
    if r.fields.pos == r.pos then return HOME, DROP end
    return HOME                                        -- taken over from another router
  end
  if r.score("collm") > threshold() then return to("large"), DROP end
  return STAY
end

function send(req, dest)
  local top = {}
  for i, t in ipairs(req.topk()) do top[i] = { t.token, t.prob } end
  if req.model == "small" then
    return { fields = { pos = req.pos, d = req.score("collm"), base = top } }
  end
  return { fields = { d = req.fields.d, base = req.fields.base, ref = top } }
end

function receive(msg, req)
  local f = msg.fields
  if not (f.base and f.ref and msg.count == 0) then return COMMIT end
  local mixed, ids = {}, {}
  local function add(list, weight)
    for _, t in ipairs(list) do
      if not mixed[t[1]] then table.insert(ids, t[1]) end
      mixed[t[1]] = (mixed[t[1]] or 0) + weight * t[2]
    end
  end
  add(f.base, 1 - f.d)
  add(f.ref, f.d)
  local best = ids[1]                                  -- ties: as the base model has them
  for _, id in ipairs(ids) do
    if mixed[id] > mixed[best] then best = id end
  end
  return APPEND({ best })                              -- home writes it
end
