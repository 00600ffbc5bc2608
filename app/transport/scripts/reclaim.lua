-- One step through the pending list: takes entries over that have been idle for long, from anyone.
-- KEYS[1]  stream
-- ARGV     group, consumer, least idle time in ms, cursor, count
-- Returns  {next cursor, {id, {field, value, ...}}, ...}; raises NOGROUP
--
-- JUSTID and a look at each entry: Redis 6.2 keeps deleted entries pending and answers nil for them, without an id.
local stream, group = KEYS[1], ARGV[1]
local got = redis.call('XAUTOCLAIM', stream, group, ARGV[2], ARGV[3], ARGV[4], 'COUNT', ARGV[5], 'JUSTID')
local answer = {got[1]}
for _, id in ipairs(got[2]) do
  local entry = redis.call('XRANGE', stream, id, id)[1]
  if entry then
    answer[#answer + 1] = entry
  else
    redis.call('XACK', stream, group, id)
  end
end
return answer
