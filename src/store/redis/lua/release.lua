-- The dispatch tier gives the driver back: both sides are free, with the pair kept apart or the
-- driver unasked until its next ping.
--
-- Promise      (request, driver, fence) is compared with the record in this step (INV-3).
-- KEYS, ARGV   As in region.lua; the command is {claim, reason}.
-- Returns      Ok = {driver_id, request_id, fence, state = 'available', now_ms}; Err as confirm.lua.
-- Idempotent   On the claim: a repeat gets the first answer.
-- Bounded by   One claim.

local key = command.claim
local answered = live_claim(key, 'release')
if answered then
    return commit({ a = answered })
end
if command.reason == 'undeliverable' then
    local found = driver(key.driver_id)
    if found then
        found.rec.undeliverable_ping = found.pos and found.pos[4] or nil
        rec_dirty[key.driver_id] = true
    end
else
    keep_apart(key.driver_id, key.request_id)
end
free(key.driver_id)
end_trace(key.request_id, 'released')
publish_claim('released', key.driver_id, key.request_id, key.fence, command.reason)
return_request(key.request_id)
return commit({ a = claim_answer(key, 'available', now) })
