-- Takes a window: the leader after its close, any node once it is overdue.
--
-- Promise      One compare-and-set: after it only this owner claims and seals (INV-4). What is
--              overdue in the region ends in the same step.
-- KEYS, ARGV   As in region.lua; the command is {window_seq, taker}.
-- Returns      Ok = {owner, window}; Err: window_lost, not_leader, {not_closed}, {not_overdue},
--              {earlier_unsealed}, {quarantined}.
-- Idempotent   On the taker's nonce: a repeat keeps the owner and its batches.
-- Bounded by   One window and a sweep of 250 due items.

local seq = command.window_seq
local to = quarantine()
if to then
    return err({ quarantined = { until_ms = to } })
end
mend_closes()
local record = window(seq)
if not record then
    return err('window_lost')
end
if region.last_sealed + 1 < seq then
    return err({ earlier_unsealed = { oldest = region.last_sealed + 1 } })
end
if now < record.closes_at_ms then
    return err({ not_closed = { closes_at_ms = record.closes_at_ms } })
end
local taken = record.phase ~= 'open' and record.phase.taken
local current = taken and owner_lives(taken.owner) and taken.owner or nil
local leader, fallback = command.taker.leader, command.taker.fallback
local holder
if leader then
    local leads = leader_now()
    if leader.epoch ~= region.epoch or not leads or leads.nonce ~= leader.nonce then
        return err('not_leader')
    end
    holder = { leader = { epoch = leader.epoch, nonce = leader.nonce } }
    if taken and taken.owner.generation == region.generation
        and not same_owner(taken.owner, { generation = region.generation, holder = holder }) then
        return err('window_lost')
    end
else
    local mine = current and current.holder.fallback
    if mine and mine.nonce == fallback.nonce then
        holder = current.holder
    else
        local overdue = overdue_at(record)
        if now < overdue then
            return err({ not_overdue = { overdue_at_ms = overdue } })
        end
        region.takes = region.takes + 1
        region_dirty = true
        holder = { fallback = { take = region.takes, nonce = fallback.nonce } }
    end
end
local owner = { generation = region.generation, holder = holder }
if not same_owner(current, owner) then
    record.phase = { taken = { owner = owner, at_ms = now } }
    drop_batches(record)
    touch_window(seq)
end
sweep_due()
return ok({ owner = owner, window = record })
