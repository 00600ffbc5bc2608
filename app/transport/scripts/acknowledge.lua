-- Removes entries that are pending for this consumer; a late worker must not remove the new holder's.
-- KEYS[1]  stream
-- ARGV     group, consumer, ids
-- Returns  how many were removed
local stream, group, consumer, mine = KEYS[1], ARGV[1], ARGV[2], {}
for i = 3, #ARGV do
  local found = redis.pcall('XPENDING', stream, group, ARGV[i], ARGV[i], 1, consumer)
  if found['err'] then
    if string.find(found['err'], 'NOGROUP', 1, true) or string.find(found['err'], 'WRONGTYPE', 1, true) then return 0 end
    return found
  end
  if #found > 0 then
    redis.call('XACK', stream, group, ARGV[i])
    redis.call('XDEL', stream, ARGV[i])
    mine[#mine + 1] = ARGV[i]
  end
end
return #mine
