-- Resets the idle time of entries that are pending for this consumer; XCLAIM alone would take them from others.
-- KEYS[1]  stream
-- ARGV     group, consumer, ids
-- Returns  how many were renewed
local stream, group, consumer, renewed = KEYS[1], ARGV[1], ARGV[2], 0
for i = 3, #ARGV do
  local found = redis.pcall('XPENDING', stream, group, ARGV[i], ARGV[i], 1, consumer)
  if found['err'] then
    if string.find(found['err'], 'NOGROUP', 1, true) or string.find(found['err'], 'WRONGTYPE', 1, true) then return 0 end
    return found
  end
  if #found > 0 then
    redis.call('XCLAIM', stream, group, consumer, 0, ARGV[i], 'JUSTID')
    renewed = renewed + 1
  end
end
return renewed
