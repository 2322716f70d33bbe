-- The records that a script has read and changed: drivers, requests, due times, events, windows.

---- records ---------------------------------------------------------------------------------

-- id → {pos = presence or false, rec = claim and cool-downs}, or false when there is none
local drivers, pos_dirty, rec_dirty = {}, {}, {}
-- id → record, or false when there is none
local requests, request_dirty = {}, {}
-- id → true when it came to be, false when it is gone
local ids = {}
-- id → waiting since, or false
local pending = {}
-- id → 'offered' | 'trip' | false
local held = {}
-- key → at, or false; and those that are set only when absent
local due, due_if_absent = {}, {}
-- of `due`, those that are due at once: a sweep goes on to them
local due_now = {}
-- number → window record, or false; answered batches to write; fields to drop
local windows, window_dirty = {}, {}
local batch_writes, batch_drops = {}, {}
local report_writes, report_drops = {}, {}
local own, own_dirty, own_part_writes, own_part_drops = {}, {}, {}, {}
local events = {}
local driver_count, request_count, pending_count, own_count = nil, nil, nil, nil

local function new_driver_record()
    return { cooldowns = {} }
end

local function place_driver(id, pos, rec)
    if not pos then
        drivers[id] = false
    else
        drivers[id] = {
            pos = pos ~= '' and msgunpack(pos) or false,
            rec = rec and msgunpack(rec) or new_driver_record(),
        }
    end
end

local function driver(id)
    if drivers[id] == nil then
        local pos = call('HGET', POS, id)
        place_driver(id, pos, pos and call('HGET', DRIVERS, id))
    end
    return drivers[id] or nil
end

-- reads many at once
local function read_drivers(ids)
    for from = 1, #ids, CHUNK do
        local wanted = {}
        for i = from, min(from + CHUNK - 1, #ids) do
            if drivers[ids[i]] == nil then
                wanted[#wanted + 1] = ids[i]
            end
        end
        if #wanted > 0 then
            local pos = call('HMGET', POS, unpack(wanted))
            local rec = call('HMGET', DRIVERS, unpack(wanted))
            for i, id in ipairs(wanted) do
                place_driver(id, pos[i], rec[i])
            end
        end
    end
end

local function count_drivers()
    driver_count = driver_count or call('HLEN', POS)
    return driver_count
end

-- the driver's record, made when there is none
local function driver_or_new(id)
    local found = driver(id)
    if not found then
        found = { pos = false, rec = new_driver_record() }
        count_drivers()
        driver_count = driver_count + 1
        drivers[id] = found
        pos_dirty[id] = true
    end
    return found
end

local function forget_driver(id)
    count_drivers()
    driver_count = driver_count - 1
    drivers[id] = false
    pos_dirty[id], rec_dirty[id] = true, true
end

local function request(id)
    if requests[id] == nil then
        local record = call('HGET', REQUESTS, id)
        requests[id] = record and msgunpack(record) or false
    end
    return requests[id] or nil
end

local function read_requests(ids)
    for from = 1, #ids, CHUNK do
        local wanted = {}
        for i = from, min(from + CHUNK - 1, #ids) do
            if requests[ids[i]] == nil then
                wanted[#wanted + 1] = ids[i]
            end
        end
        if #wanted > 0 then
            local found = call('HMGET', REQUESTS, unpack(wanted))
            for i, id in ipairs(wanted) do
                requests[id] = found[i] and msgunpack(found[i]) or false
            end
        end
    end
end

local function count_requests()
    request_count = request_count or call('HLEN', REQUESTS)
    return request_count
end

local function put_request(id, record)
    count_requests()
    if not request(id) then
        request_count = request_count + 1
        ids[id] = true
    end
    requests[id] = record
    request_dirty[id] = true
end

local function forget_request(id)
    count_requests()
    if request(id) then
        request_count = request_count - 1
        ids[id] = false
    end
    requests[id] = false
    request_dirty[id] = true
end

-- the claim that holds a driver for the request, as the request remembers it
local function live(record)
    local last = record.cl[#record.cl]
    if last and last.o == 'live' then
        return last
    end
    return nil
end

local function count_pending()
    pending_count = pending_count or call('ZCARD', PENDING)
    return pending_count
end

local function wait_on(id, record)
    count_pending()
    pending_count = pending_count + 1
    record.st = 'pending'
    pending[id] = record.at
end

-- to be called while the record still says `pending`
local function wait_no_more(id, record)
    if record.st == 'pending' then
        count_pending()
        pending_count = pending_count - 1
        pending[id] = false
    end
end

---- due times -------------------------------------------------------------------------------

-- in this order when due at the same instant
local function driver_due_key(id) return '1' .. id end
local function request_due_key(id) return '2' .. id end
local function window_due_key(seq) return '3' .. string.format('%016.0f', seq) end
local function own_due_key(id) return '4' .. id end
local QUARANTINE_DUE = '5'

local function due_set(key, at)
    due[key] = at
    due_now[key] = at <= now and at or nil
end

local function due_remove(key)
    due[key] = false
    due_now[key] = nil
end

---- the outbox ------------------------------------------------------------------------------

-- fields are pairs of name and text
local function publish(kind, ...)
    region.last_event = region.last_event + 1
    region_dirty = true
    events[#events + 1] = { text(region.last_event) .. '-0', 'type', kind, 'at', text(now), ... }
end

---- windows ---------------------------------------------------------------------------------

-- an unsealed window: they are numbered without gaps and sealed in order
local function window(seq)
    if seq <= region.last_sealed or seq > region.last_window then
        return nil
    end
    if windows[seq] == nil then
        windows[seq] = msgunpack(call('HGET', WINDOWS, text(seq)))
    end
    return windows[seq]
end

local function oldest_window()
    return window(region.last_sealed + 1)
end

local function overdue_at(record)
    local deadline = record.closes_at_ms + record.budget_ms + record.grace_ms
    if record.phase == 'open' then
        return deadline
    end
    return max(deadline, record.phase.taken.at_ms + record.grace_ms)
end
