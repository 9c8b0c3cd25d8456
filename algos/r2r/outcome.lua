-- r2r_outcome.lua: R2R's rule with a head that was trained on right and wrong answers.
-- Large iff score >= threshold. The head "outcome" learned which tokens of the small
-- model change the answer: its labels are texts written to the end after either
-- model's token, as far as an answer can be checked.

local threshold = param("threshold", { default = 0.5, head = "outcome", min = 0, max = 1,
  help = "probability, by the head, that the candidate spoils the answer" })

function route(r)
  if r.model ~= "small" then return HOME end           -- one token, then back
  if r.score("outcome") >= threshold() then
    return to("large"), DROP                           -- same position, written anew
  end
  return STAY
end
