-- Gives the leadership to who asks while nobody leads.
--
-- Promise      The epoch is higher than any before; who held it before is refused from now on.
-- KEYS, ARGV   As in region.lua; the command is {node, nonce, lease_ms}.
-- Returns      Ok = {epoch, until_ms}; Err: {held = {node, epoch, until_ms, left_ms}}.
-- Idempotent   On (node, nonce): a repeat keeps the epoch.
-- Bounded by   A lease of 60 s.

local until_ms = now + max(1, min(MAX_LEADER_LEASE_MS, command.lease_ms))
local leader = leader_now()
region_dirty = true
if leader then
    if leader.node ~= command.node or leader.nonce ~= command.nonce then
        region_dirty = false
        return err({
            held = {
                node = leader.node,
                epoch = region.epoch,
                until_ms = leader.until_ms,
                left_ms = leader.until_ms - now,
            },
        })
    end
    leader.until_ms = max(leader.until_ms, until_ms)
    return ok({ epoch = region.epoch, until_ms = leader.until_ms })
end
region.epoch = rise(region.epoch)
region.leader = { node = command.node, nonce = command.nonce, until_ms = until_ms }
return ok({ epoch = region.epoch, until_ms = until_ms })
