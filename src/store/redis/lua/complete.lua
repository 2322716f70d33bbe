-- The trip is over: the driver is free as its last ping says.
--
-- Promise      (request, driver, fence) is compared with the record in this step (INV-3).
-- KEYS, ARGV   As in region.lua; the command is {claim, outcome}.
-- Returns      Ok = {driver_id, request_id, fence, state = 'available' | 'offline', now_ms};
--              Err: not_confirmed, and as confirm.lua.
-- Idempotent   On the claim: a repeat gets the first answer.
-- Bounded by   One claim.

local key = command.claim
local answered = live_claim(key, 'complete')
if answered then
    return commit({ a = answered })
end
local left = end_trip(key.driver_id, key.request_id, key.fence, command.outcome)
return commit({ a = claim_answer(key, left, now) })
