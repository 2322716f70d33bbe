-- Writes a region's generation into the registry.
--
-- Promise      The generation of a region never goes back.
-- KEYS         1 the registry (hash: region → generation)
-- ARGV         1 region, 2 generation
-- Returns      The generation that stands there, in digits.
-- Idempotent   On (region, generation).
-- Bounded by   One field.

local stands = redis.call('HGET', KEYS[1], ARGV[1])
if stands and tonumber(stands) >= tonumber(ARGV[2]) then
    return stands
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return ARGV[2]
