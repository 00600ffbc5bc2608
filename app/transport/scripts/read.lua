-- Reads entries without taking them.
-- KEYS[1]  stream
-- ARGV     first id of the range ('-' or '(id'), count
-- Returns  {last id of the stream, {id, {field, value, ...}}, ...}; '0-0' alone when there is no stream
local stream = KEYS[1]
if redis.call('TYPE', stream)['ok'] ~= 'stream' then return {'0-0'} end
local info = redis.call('XINFO', 'STREAM', stream)
local answer = {'0-0'}
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then answer[1] = info[i + 1] end
end
for _, entry in ipairs(redis.call('XRANGE', stream, ARGV[1], '+', 'COUNT', ARGV[2])) do answer[#answer + 1] = entry end
return answer
