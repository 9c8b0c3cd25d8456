-- large_only.lua: the large model writes everything, the first token included.
-- The upper end of a sweep.

function route(r)
  if r.model == "large" then return STAY end           -- never give control back
  return to("large"), DROP
end
