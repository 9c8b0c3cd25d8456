-- small_only.lua: the small model writes everything. The lower end of a sweep.

function route(r)
  if r.model ~= "small" then return HOME end           -- taken over from another router
  return STAY
end
