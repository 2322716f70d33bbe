-- Begins a caller's own window, answers it again, or says who is at it.
--
-- Promise      One node at a time works on it; its answer is the same however often it is asked.
-- KEYS, ARGV   As in region.lua; the command is {window_id, fingerprint, runner, work_ms}.
-- Returns      Ok = {run = {claimed}} or {done = {result}};
--              Err: window_conflict, {window_in_progress}, {quarantined}, paused, region_full.
-- Idempotent   On (id, body, runner).
-- Bounded by   1,000 own windows a region.

local to = quarantine()
if to then
    return err({ quarantined = { until_ms = to } })
end
local id = command.window_id
local until_ms = now + max(1, min(MAX_OWN_WORK_MS, command.work_ms))
local record = call('HGET', OWN, id)
if record then
    record = msgunpack(record)
    if record.fingerprint ~= command.fingerprint then
        return err('window_conflict')
    end
    if record.done then
        return ok({ done = { result = call('HGET', OWNPARTS, 'r:' .. id) } })
    end
    if record.runner ~= command.runner then
        if now < record.until_ms then
            return err({ window_in_progress = { until_ms = record.until_ms } })
        end
        for _, number in ipairs(record.batch_nos) do
            own_part_drops[#own_part_drops + 1] = 'b' .. text(number) .. ':' .. id
        end
        record.batch_nos = {}
    end
    record.runner, record.until_ms = command.runner, until_ms
    own[id], own_dirty[id] = record, true
    local claimed = {}
    for chunk = 1, record.claims do
        for _, pair in ipairs(msgunpack(call('HGET', OWNPARTS, 'c' .. text(chunk) .. ':' .. id))) do
            claimed[#claimed + 1] = pair
        end
    end
    return ok({ run = { claimed = claimed } })
end
if rules.paused then
    return err('paused')
end
if call('HLEN', OWN) >= MAX_OWN_WINDOWS then
    return err('region_full')
end
due_set(own_due_key(id), later(now + MAX_OWN_WORK_MS, rules.window_result_ttl_ms))
own[id] = {
    fingerprint = command.fingerprint,
    runner = command.runner,
    until_ms = until_ms,
    batch_nos = {},
    claims = 0,
}
own_dirty[id] = true
return ok({ run = { claimed = {} } })
