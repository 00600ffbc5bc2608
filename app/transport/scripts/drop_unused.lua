-- Deletes a stream that holds nothing and that nobody reads: queue names are callers' to choose, and would pile up.
-- KEYS[1]  stream
-- Returns  1 when it was deleted
local stream = KEYS[1]
if redis.call('TYPE', stream)['ok'] ~= 'stream' or redis.call('XLEN', stream) > 0 then return 0 end
for _, info in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
  for i = 1, #info, 2 do
    if (info[i] == 'consumers' or info[i] == 'pending') and info[i + 1] > 0 then return 0 end
  end
end
return redis.call('DEL', stream)
