-- The lease ends later; it never gets shorter, and the fence stays.
--
-- Promise      (request, driver, fence) is compared with the record in this step (INV-3).
-- KEYS, ARGV   As in region.lua; the command is {claim, lease_ms}.
-- Returns      Ok = {driver_id, request_id, fence, state = 'offered', now_ms, lease_until_ms};
--              Err as confirm.lua.
-- Idempotent   A repeat counts from when it arrives.
-- Bounded by   One claim; the lease by the rails.

local key = command.claim
local answered = live_claim(key, 'extend')
if answered then
    return commit({ a = answered })
end
local found = driver(key.driver_id)
local before = found and found.rec.claim and ends_at(found.rec.claim) or now
local lease_until_ms = max(before, now + lease_of(command.lease_ms))
set_phase(key.driver_id, {
    offered = { lease_until_ms = lease_until_ms, lease_ms = lease_until_ms - now },
})
due_set(driver_due_key(key.driver_id), lease_until_ms)
local answer = claim_answer(key, 'offered', now)
answer.Ok.lease_until_ms = lease_until_ms
return commit({ a = answer })
