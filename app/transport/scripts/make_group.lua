-- Makes the group of a stream, and the stream, when they are missing; at the first entry, never at the last.
-- KEYS[1]  stream
-- ARGV     group
-- Returns  1 when it was made
local stream, group = KEYS[1], ARGV[1]
local kind = redis.call('TYPE', stream)['ok']
if kind ~= 'stream' and kind ~= 'none' then redis.call('DEL', stream) end
local made = redis.pcall('XGROUP', 'CREATE', stream, group, '0', 'MKSTREAM')
if made['err'] then
  if string.find(made['err'], 'BUSYGROUP', 1, true) then return 0 end
  return made
end
return 1
