-- query_mix.lua: a coin per request decides which model writes the whole answer.
-- The straight line between both models that query-level routers have to beat.

local share = param("share", { default = 0.2, min = 0, max = 1,
  help = "share of requests that the large model answers" })

function route(r)
  if r.model ~= "small" then return r.fields.answer and STAY or HOME end
  if r.first and r.random(0) < share() then return to("large"), DROP end
  return STAY                                          -- asked once, at the first token
end

function send(req, dest)
  if dest == "large" then return { fields = { answer = true } } end
end
