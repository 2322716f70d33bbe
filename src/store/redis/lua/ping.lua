-- Takes pings in: the newest of each driver wins, each stands alone.
--
-- Promise      Presence changes, claims do not. A ping that is not newer is stale.
-- KEYS, ARGV   As in region.lua; the command is {pings = {{id, place, …}, …}} (see `wire.rs`).
-- Returns      One letter a ping: m(oved into another cell), a(ccepted), s(tale), f(rom the future),
--              r(egion full).
-- Idempotent   A repeated ping is stale.
-- Bounded by   500 pings a call, which the node sees to.

-- a field that is left out keeps its value; `false` clears it
local function patched(value, before)
    if value == nil then
        return before
    end
    return value
end

local function ping_one(ping)
    local id, at_ms = ping.id, ping.at
    if at_ms > later(now, rules.max_clock_skew_ms) then
        return 'f'
    end
    local found = driver(id)
    local pos = found and found.pos
    if pos and at_ms <= pos[4] then
        return 's'
    end
    local fate = 'a'
    if not pos or pos[3] ~= ping.cell then
        fate = 'm'
    end
    if not pos then
        if not found and count_drivers() >= MAX_DRIVERS then
            return 'r'
        end
        found = driver_or_new(id)
        local key = driver_due_key(id)
        if due[key] == nil then
            due_if_absent[key] = later(now, rules.driver_ttl_ms)
        end
        pos = { 0, 0, '', 0, 0, 0, false, false, false, false, false, false }
    end
    if ping.trip_end then
        -- of which trip it is the end, is told by when it was announced
        ping.trip_end[4] = min(at_ms, now)
    end
    found.pos = {
        ping.lat, ping.lng, ping.cell, at_ms, now, ping.status,
        patched(ping.heading, pos[7]),
        patched(ping.speed, pos[8]),
        patched(ping.class, pos[9]),
        patched(ping.acceptance, pos[10]),
        patched(ping.idle, pos[11]),
        patched(ping.trip_end, pos[12]),
    }
    pos_dirty[id] = true
    return fate
end

local ids = {}
for i, ping in ipairs(command.pings) do
    ids[i] = ping.id
end
read_drivers(ids)
local fates = {}
for i, ping in ipairs(command.pings) do
    fates[i] = ping_one(ping)
end
return commit({ a = table.concat(fates) })
