-- Takes a request back and frees its driver, both at once.
--
-- Promise      After it no confirm of the request succeeds. One `cancelled` event.
-- KEYS, ARGV   As in region.lua; the command is {request_id}.
-- Returns      Ok = {request_id, at_ms, freed = {driver, fence}};
--              Err: unknown_request, not_held, already_confirmed, request_closed.
-- Idempotent   On the request: a repeat gets the first answer.
-- Bounded by   One request and its driver.

local id = command.request_id
touch_request(id)
local record = request(id)
if not record then
    return err(quarantine() and 'not_held' or 'unknown_request')
end
if record.st == 'confirmed' then
    return err('already_confirmed')
end
if record.st == 'expired' or record.st == 'released' then
    return err('request_closed')
end
if record.st == 'cancelled' then
    local last = record.cl[#record.cl]
    local freed = last and last.o == 'cancelled' and { last.d, last.f } or nil
    return ok({ request_id = id, at_ms = record.ed or now, freed = freed })
end
local trace = live(record)
local freed = trace and { trace.d, trace.f } or nil
if freed then
    free(freed[1])
end
end_trace(id, 'cancelled')
end_request(id, 'cancelled')
if freed then
    publish('cancelled', 'request', id, 'driver', freed[1], 'fence', text(freed[2]))
else
    publish('cancelled', 'request', id)
end
return ok({ request_id = id, at_ms = now, freed = freed })
