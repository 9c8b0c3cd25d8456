-- oracle.lua: the large model writes exactly where its token is not the small one's.
-- No router knows that before it has asked, so both models run at every position:
-- the share of large tokens is the least that gives the large model's answers, the
-- large model's steps are all of them.

function route(r)
  if r.model == "small" then return to("large"), DROP end
  if r.token == r.fields.token then return HOME, DROP end  -- alike: the small one's
  return HOME                                          -- the large model's token stands
end

function send(req, dest)
  return { fields = { token = req.token } }
end

function receive(msg, req)
  if req.model == "small" and msg.count == 0 and msg.fields.token then
    return APPEND({ msg.fields.token })                -- home writes it
  end
  return COMMIT
end
