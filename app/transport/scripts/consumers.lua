-- The names of a group's consumers.
-- KEYS[1]  stream
-- ARGV     group
-- Returns  names; none when there is no stream or no group
local names = {}
local found = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if found['err'] then
  for _, word in ipairs({'NOGROUP', 'WRONGTYPE', 'no such key'}) do
    if string.find(found['err'], word, 1, true) then return {} end
  end
  return found
end
for _, info in ipairs(found) do
  for i = 1, #info, 2 do
    if info[i] == 'name' then names[#names + 1] = info[i + 1] end
  end
end
return names
