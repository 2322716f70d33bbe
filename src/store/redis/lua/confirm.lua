-- The driver accepted: the trip is on.
--
-- Promise      (request, driver, fence) is compared with the record in this step (INV-3); a lease
--              that is over ends first.
-- KEYS, ARGV   As in region.lua; the command is {claim = {driver_id, request_id, fence}}.
-- Returns      Ok = {driver_id, request_id, fence, state = 'on_trip', now_ms};
--              Err: unknown_request, not_held, lease_expired, already_confirmed, request_closed,
--              fence_stale.
-- Idempotent   On the claim: a repeat gets the first answer.
-- Bounded by   One claim.

local key = command.claim
local answered = live_claim(key, 'confirm')
if answered then
    return commit({ a = answered })
end
local until_ms = later(now, rules.max_trip_ms)
set_phase(key.driver_id, { on_trip = { until_ms = until_ms } })
due_set(driver_due_key(key.driver_id), until_ms)
due_remove(request_due_key(key.request_id))
local record = request(key.request_id)
record.st = 'confirmed'
live(record).c = now
request_dirty[key.request_id] = true
publish_claim('confirmed', key.driver_id, key.request_id, key.fence)
return commit({ a = claim_answer(key, 'on_trip', now) })
