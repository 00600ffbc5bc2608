-- Reads new entries of several streams in the order given, no more than count together.
-- KEYS     streams
-- ARGV     group, consumer, count
-- Returns  {{stream, {{id, {field, value, ...}}, ...}}, ...} as XREADGROUP does; raises NOGROUP
local left, answer = tonumber(ARGV[3]), {}
for _, stream in ipairs(KEYS) do
  if left == 0 then break end
  local got = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', left, 'STREAMS', stream, '>')
  if got then
    answer[#answer + 1] = got[1]
    left = left - #got[1][2]
  end
end
return answer
