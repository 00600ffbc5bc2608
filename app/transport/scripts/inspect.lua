-- Where entries stand, and, when asked to, deletes those that were delivered and are pending for nobody.
-- KEYS[1]  stream
-- ARGV     group, first id of the range ('-' or '(id'), count, sweep '0'|'1'
-- Returns  {server time in ms, {id, {field, value, ...}, 'unread'|'pending'|'unowned', consumer, idle ms, deliveries}, ...}
local stream, group, sweep = KEYS[1], ARGV[1], ARGV[4] == '1'
local time = redis.call('TIME')
local answer = {time[1] .. string.sub('00000' .. time[2], -6, -4)}
if redis.call('TYPE', stream)['ok'] ~= 'stream' then return answer end

local delivered = {0, 0}
local function parts(id)
  local dash = string.find(id, '-', 1, true)
  return {tonumber(string.sub(id, 1, dash - 1)), tonumber(string.sub(id, dash + 1))}
end
for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  local facts = {}
  for i = 1, #info, 2 do facts[info[i]] = info[i + 1] end
  if facts['name'] == group then delivered = parts(facts['last-delivered-id']) end
end

for _, entry in ipairs(redis.call('XRANGE', stream, ARGV[2], '+', 'COUNT', ARGV[3])) do
  local id = parts(entry[1])
  if id[1] > delivered[1] or (id[1] == delivered[1] and id[2] > delivered[2]) then
    answer[#answer + 1] = {entry[1], entry[2], 'unread', '', 0, 0}
  else
    local holder = redis.call('XPENDING', stream, group, entry[1], entry[1], 1)[1]
    if holder then
      answer[#answer + 1] = {entry[1], entry[2], 'pending', holder[2], holder[3], holder[4]}
    else
      answer[#answer + 1] = {entry[1], entry[2], 'unowned', '', 0, 0}
      if sweep then redis.call('XDEL', stream, entry[1]) end
    end
  end
end
return answer
