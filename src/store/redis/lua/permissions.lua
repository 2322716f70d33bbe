-- Runs every command that the scripts run, so that a missing permission shows at the start: in the
-- middle of a step it would leave half of it done.
--
-- Promise      Nothing is left behind but an empty stream.
-- KEYS         1 a hash, 2 a sorted set, 3 a string, 4 a stream: of names that nothing else has
-- ARGV         none
-- Returns      1; or the server's error.
-- Idempotent   Yes.
-- Bounded by   One value of each kind.

local call = redis.call
local hash, set, text, stream = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

call('TIME')
call('INFO', 'replication')
call('HSET', hash, 'f', '1')
call('HGET', hash, 'f')
call('HMGET', hash, 'f')
call('HLEN', hash)
call('HDEL', hash, 'f')
call('ZADD', set, 0, 'm')
call('ZADD', set, 'NX', 0, 'm')
call('ZCARD', set)
call('ZRANGE', set, 0, 0, 'WITHSCORES')
call('ZRANGEBYSCORE', set, '-inf', 0, 'WITHSCORES', 'LIMIT', 0, 1)
call('ZRANGEBYLEX', set, '-', '+', 'LIMIT', 0, 1)
call('ZREM', set, 'm')
call('SET', text, '1', 'PX', 1)
call('GET', text)
call('XADD', stream, 'MAXLEN', '=', 1, '*', 'f', '1')
call('XRANGE', stream, '-', '+', 'COUNT', 1)
call('XTRIM', stream, 'MAXLEN', '=', 0)
return 1
