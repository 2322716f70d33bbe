-- Takes a driver offline as a ping of now would; a tombstone stays for driver_ttl_ms.
--
-- Promise      A driver that is held is not touched.
-- KEYS, ARGV   As in region.lua; the command is {driver_id}.
-- Returns      Ok = true; Err: unknown_driver, held.
-- Idempotent   Offline twice is offline once.
-- Bounded by   One driver.

local id = command.driver_id
touch_driver(id)
local found = driver(id)
if not found then
    return err('unknown_driver')
end
if found.rec.claim then
    return err('held')
end
local pos = found.pos
if not pos then
    return err('unknown_driver')
end
pos[6] = 2
pos[4] = max(pos[4], now)
pos[5] = now
pos_dirty[id] = true
return ok(true)
