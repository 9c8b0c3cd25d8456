-- query_head.lua: a trained head reads the prompt and picks who writes the whole answer.
-- The idea of RouteLLM, arXiv 2406.18665: large iff score >= threshold. The head
-- "query" reads the small model's hidden state at the end of the prompt.

local threshold = param("threshold", { default = 0.5, head = "query", min = 0, max = 1,
  help = "score at which the large model answers" })

function route(r)
  if r.model ~= "small" then return r.fields.answer and STAY or HOME end
  if r.first and r.score("query") >= threshold() then return to("large"), DROP end
  return STAY                                          -- asked once, at the first token
end

function send(req, dest)
  if dest == "large" then return { fields = { answer = true } } end
end
