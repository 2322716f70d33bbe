-- Gives the leadership up; done before is done.
--
-- Promise      Another node may lead at once, under a higher epoch.
-- KEYS, ARGV   As in region.lua; the command is {epoch, nonce}.
-- Returns      Ok = true; Err: lost.
-- Idempotent   On (epoch, nonce).
-- Bounded by   One leadership.

local leader = region.leader
if command.epoch ~= region.epoch or (leader and leader.nonce ~= command.nonce) then
    return err('lost')
end
region.leader = nil
region_dirty = true
return ok(true)
