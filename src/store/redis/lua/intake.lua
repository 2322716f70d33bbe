-- Takes requests in, each for itself.
--
-- Promise      What is answered as taken ends in exactly one of confirmed, cancelled, expired
--              (INV-6); its `requested` event is written in this step (INV-7).
-- KEYS, ARGV   As in region.lua; the command is {requests = {{id, fp, body, …}, …}} (see `wire.rs`).
-- Returns      Ok = {requests, rejected}; entry codes: id_conflict, duplicate_in_batch, region_full,
--              requested_at_in_future, already_expired, too_large;
--              Err: {quarantined = {until_ms}}, paused.
-- Idempotent   On (id, body): a repeat gets the first answer.
-- Bounded by   1,000 requests.

local to = quarantine()
if to then
    return err({ quarantined = { until_ms = to } })
end
if rules.paused then
    return err('paused')
end
local taken, rejected = intake_all(command.requests)
return ok({ requests = taken, rejected = rejected })
