-- Publishes rows while the stream is as the publisher left it, up to a window.
-- KEYS[1]  stream
-- ARGV     group, window, the last id the publisher knows ('0-0': none), then job, attempt, job, attempt, ...
-- Returns  {changed 0|1, length, oldest id or '', refusal or '', last id of the stream, id, id, ...}
--
-- A stream's last-generated-id only grows, and is gone or older after FLUSHALL, DEL or a restart from an old copy.
-- Whatever differs from what the publisher knows, it must read the stream before it adds to it.
local stream, group, window, known = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3]

local kind = redis.call('TYPE', stream)['ok']
if kind ~= 'stream' and kind ~= 'none' then redis.call('DEL', stream) end

local facts = {groups = 0}
local function look()
  local info = redis.call('XINFO', 'STREAM', stream)
  for i = 1, #info, 2 do facts[info[i]] = info[i + 1] end
end
if kind == 'stream' then look() end
if facts['groups'] == 0 then
  redis.call('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
  look()
end

local last, length = facts['last-generated-id'], facts['length']
local oldest = facts['first-entry'] and facts['first-entry'][1] or ''
local answer = {0, length, oldest, '', last}
if last ~= known then
  answer[1] = 1
  return answer
end

for i = 4, #ARGV, 2 do
  if length >= window then break end
  local id = redis.pcall('XADD', stream, '*', 'job', ARGV[i], 'attempt', ARGV[i + 1])
  if type(id) == 'table' then
    answer[4] = id['err']
    -- A stranger's entry with the greatest id there is ends a stream; what is in it is only a hint.
    if string.find(id['err'], 'exhausted', 1, true) then redis.call('DEL', stream) end
    break
  end
  length = length + 1
  answer[#answer + 1] = id
  answer[5] = id
  if answer[3] == '' then answer[3] = id end
end
answer[2] = length
return answer
