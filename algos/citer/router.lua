-- citer.lua: the small model writes while a trained head is confident in it.
-- CITER, COLM 2025, arXiv 2502.01976: large iff confidence < threshold. The head
-- "citer" reads the small model's last hidden state.

local threshold = param("threshold", { default = 0.95, head = "citer", min = 0, max = 1,
  help = "confidence below which a token goes to the large model" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.score("citer") < threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
