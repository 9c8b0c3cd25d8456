-- rstitch.lua: stitch a chain of thought from two models by confidence.
-- R-Stitch, arXiv 2507.17307, algorithm 1: entropy over ln V of the model that
-- is writing; unsure (H > threshold) means large, sure (H <= threshold) small.

local threshold = param("threshold", { default = 0.03, min = 0, max = 1,
  help = "normalised entropy above which the large model writes" })

function route(r)
  local unsure = r.entropy_norm > threshold()
  if r.model == "small" then
    if unsure then return to("large"), DROP end        -- the unsure token is not used
    return STAY
  end
  if unsure then return STAY end                       -- the large model writes on
  return HOME                                          -- its own token is kept
end
