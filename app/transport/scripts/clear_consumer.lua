-- Removes what is pending for a consumer that is gone, then the consumer.
-- KEYS[1]  stream
-- ARGV     group, consumer, count
-- Returns  the ids removed; fewer than count: the consumer is gone too
--
-- DELCONSUMER drops pending entries out of the group for ever, so it comes only where nothing is pending.
local stream, group, consumer, count = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local pending = redis.pcall('XPENDING', stream, group, '-', '+', count, consumer)
if pending['err'] then
  for _, word in ipairs({'NOGROUP', 'WRONGTYPE', 'no such key'}) do
    if string.find(pending['err'], word, 1, true) then return {} end
  end
  return pending
end
local removed = {}
for _, entry in ipairs(pending) do
  redis.call('XACK', stream, group, entry[1])
  redis.call('XDEL', stream, entry[1])
  removed[#removed + 1] = entry[1]
end
if #removed < count then redis.call('XGROUP', 'DELCONSUMER', stream, group, consumer) end
return removed
