-- Removes entries that stand as they were seen: with the same consumer, or with nobody.
-- KEYS[1]  stream
-- ARGV     group, then id and consumer ('' for nobody) of each
-- Returns  how many were removed
local stream, group, removed = KEYS[1], ARGV[1], 0
for i = 2, #ARGV, 2 do
  local found = redis.pcall('XPENDING', stream, group, ARGV[i], ARGV[i], 1)
  local holder = not found['err'] and found[1] and found[1][2] or ''
  if holder == ARGV[i + 1] then
    if holder ~= '' then redis.call('XACK', stream, group, ARGV[i]) end
    removed = removed + redis.call('XDEL', stream, ARGV[i])
  end
end
return removed
