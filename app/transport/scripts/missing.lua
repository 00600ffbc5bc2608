-- Which entries a stream no longer holds.
-- KEYS[1]  stream
-- ARGV     ids
-- Returns  those of the ids that are gone
local gone = {}
for _, id in ipairs(ARGV) do
  if #redis.call('XRANGE', KEYS[1], id, id) == 0 then gone[#gone + 1] = id end
end
return gone
