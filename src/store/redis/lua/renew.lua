-- Makes the lease of the leadership end later. One that is over is lost, even if nobody took it.
--
-- Promise      Only the present leader renews.
-- KEYS, ARGV   As in region.lua; the command is {epoch, nonce, lease_ms}.
-- Returns      Ok = {epoch, until_ms}; Err: lost.
-- Idempotent   A repeat counts from when it arrives; the lease never gets shorter.
-- Bounded by   A lease of 60 s.

local leader = leader_now()
if command.epoch ~= region.epoch or not leader or leader.nonce ~= command.nonce then
    return err('lost')
end
leader.until_ms = max(leader.until_ms, now + max(1, min(MAX_LEADER_LEASE_MS, command.lease_ms)))
region_dirty = true
return ok({ epoch = region.epoch, until_ms = leader.until_ms })
