-- Ends a caller's own window with its answer; the first answer stands.
--
-- Promise      What is answered is what every later caller gets.
-- KEYS, ARGV   As in region.lua; the command is {window_id, runner, result}.
-- Returns      Ok = the answer's bytes; Err: window_lost, {quarantined}.
-- Idempotent   On the answer.
-- Bounded by   One answer, kept window_result_ttl_ms.

local id = command.window_id
local record = call('HGET', OWN, id)
record = record and msgunpack(record)
if record and record.done and call('HGET', OWNPARTS, 'r:' .. id) == command.result then
    return ok(command.result)
end
local to = quarantine()
if to then
    return err({ quarantined = { until_ms = to } })
end
if not record or record.done or record.runner ~= command.runner then
    return err('window_lost')
end
for _, number in ipairs(record.batch_nos) do
    own_part_drops[#own_part_drops + 1] = 'b' .. text(number) .. ':' .. id
end
for chunk = 1, record.claims do
    own_part_drops[#own_part_drops + 1] = 'c' .. text(chunk) .. ':' .. id
end
own[id] = { fingerprint = record.fingerprint, done = true, batch_nos = {}, claims = 0 }
own_dirty[id] = true
own_part_writes['r:' .. id] = command.result
due_set(own_due_key(id), later(now, rules.window_result_ttl_ms))
return ok(command.result)
