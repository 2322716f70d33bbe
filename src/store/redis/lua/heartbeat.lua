-- Tells that a node is alive, or that it leaves; and who is alive.
--
-- Promise      A node that was heard of within its time is listed, whoever asks.
-- KEYS         1 the nodes (sorted set: node → until when, by the store's clock)
-- ARGV         1 node, 2 how long it counts as alive in ms; 0: it leaves
-- Returns      The nodes that are alive, in the order of their names.
-- Idempotent   A repeat counts from when it arrives.
-- Bounded by   1,000 nodes.

local clock = redis.call('TIME')
local now = math.floor((clock[1] * 1000000 + clock[2]) / 1000)
local life = tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if life == 0 then
    redis.call('ZREM', KEYS[1], ARGV[1])
elseif redis.call('ZCARD', KEYS[1]) < 1000 then
    redis.call('ZADD', KEYS[1], string.format('%.0f', now + life), ARGV[1])
end
local alive = redis.call('ZRANGE', KEYS[1], 0, -1)
table.sort(alive)
return alive
