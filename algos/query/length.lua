-- query_length.lua: the large model answers the requests with a long prompt.

local length = param("length", { default = 56, min = 1, max = 2048,
  help = "tokens of the prompt at which the large model answers" })

function route(r)
  if r.model ~= "small" then return r.fields.answer and STAY or HOME end
  if r.first and r.pos >= length() then return to("large"), DROP end
  return STAY                                          -- asked once, at the first token
end

function send(req, dest)
  if dest == "large" then return { fields = { answer = true } } end
end
