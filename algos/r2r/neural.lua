-- r2r_neural.lua: the large model rewrites the tokens that a trained head picks.
-- R2R, arXiv 2505.21600, its router: large iff sigmoid(head) >= threshold. The head
-- "r2r" reads the small model's hidden state, its candidate and its top logits.

local threshold = param("threshold", { default = 0.5, head = "r2r", min = 0, max = 1,
  help = "probability, by the head, that the candidate leads astray" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.score("r2r") >= threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
