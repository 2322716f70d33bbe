-- The region as a script sees it: read once, changed in memory, written at the end.
--
-- Promise      Nothing is written before `commit`: a script that fails in its step has changed
--              nothing. What could stop it in `commit` (memory, permissions) stops its first write
--              or is looked for at the start (see permissions.lua). The steps are those of `src/protocol`, in the same order; a differential test holds
--              each script against them.
-- KEYS         The seventeen keys of one region, always all of them (see `keys.rs`).
-- ARGV         1 the generation that the node knows, or ''
--              2 '1' when the command brings a region about
--              3 rules of a new region (JSON), '' until the script has asked for them
--              4 document of a new region (JSON)
--              5 the command (msgpack)
-- Returns      msgpack: {t = store time in µs, g = generation, s = signal} and one of
--              a = the answer
--              c = {generation, quarantined_until_ms}: not executed, the generation changed;
--              n = true: in this very step
--              m = 'unknown' there is no such region; 'defaults' send again with ARGV 3 and 4
-- Idempotent   As each script says.
-- Bounded by   The constants below, as in `src/protocol/rules.rs`.

local META, FENCE, DRIVERS, POS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local REQUESTS, IDS, PENDING, DUE = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local OFFERED, TRIPS, WINDOWS, BATCHES = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local REPORTS, OWN, OWNPARTS, EVENTS, SIGNAL = KEYS[13], KEYS[14], KEYS[15], KEYS[16], KEYS[17]

local MAX_PAIRS_A_BATCH = 250
local MAX_BATCHES_A_WINDOW = 64
local MAX_SWEPT_A_STEP = 250
local MAX_REQUESTS_A_STEP = 1000
local MAX_RECONCILED_A_STEP = 1000
local REMEMBERED_CLAIMS = 8
local REMEMBERED_COOLDOWNS = 8
local KEPT_REPORTS = 1000
local KEPT_DECISIONS = 50
local KEPT_EVENTS = 100000
local EVENT_MEMORY_MS = 3600000
local MAX_TRIMMED_A_STEP = 1000
local MAX_UNSEALED_WINDOWS = 16
local MAX_OWN_WINDOWS = 1000
local MAX_REQUESTS = 1000000
local MAX_DRIVERS = 500000
local CONFIRM_MARGIN_MS = 2000
local MAX_LEASE_MS = 60000
local MAX_OWN_WORK_MS = 60000
local MAX_LEADER_LEASE_MS = 60000
-- arguments of one Redis call; Lua unpacks up to about 8,000
local CHUNK = 500

local call = redis.call
local msgpack, msgunpack = cmsgpack.pack, cmsgpack.unpack
local min, max, floor = math.min, math.max, math.floor

-- `tostring` and `..` would write a 16-digit number with 14 digits
local function text(number)
    return string.format('%.0f', number)
end

-- an instant: sums stay within ±2^53, where a double is a whole number
local LAST = 9007199254740992
local function later(at, by)
    return max(-LAST, min(LAST, at + by))
end

-- the store's clock, read once: it goes on inside a script
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = floor(now_us / 1000)

local known = tonumber(ARGV[1])
local command = msgunpack(ARGV[5])

local region, rules = nil, nil
local region_dirty = false
-- a configuration to write
local new_rules, new_document = nil, nil
local fence, fence_dirty = 0, false

-- the next version that never falls behind the clock
local function rise(version)
    return max(version + 1, now_us)
end

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

---- the generation --------------------------------------------------------------------------

local function quarantine()
    local to = region.quarantined_until_ms
    if to and now < to then
        return to
    end
    return nil
end

-- whether this step began a generation
local begun = false

local function begin_generation(known_generation, store_id)
    begun = true
    local lease_us = MAX_LEASE_MS * 1000
    local last = max(region.generation, known_generation)
    -- a clock that is behind the last generation's beginning: data were lost twice in a short time
    region.generation = last < now_us and now_us or last + lease_us
    region.store_id = store_id
    local to = now + MAX_LEASE_MS
    region.quarantined_until_ms = to
    due_set(QUARANTINE_DUE, to)
    -- the lost primary's clock may have been ahead, by less than the quarantine
    local ahead = region.generation + lease_us
    fence, fence_dirty = max(fence, ahead), true
    region.epoch = max(region.epoch, ahead)
    region.leader = nil
    region.reconciling = nil
    region_dirty = true
    publish('generation_changed')
end

local function new_region(store_id)
    region = {
        generation = rise(0),
        store_id = store_id,
        takes = 0,
        epoch = 0,
        last_window = 0,
        last_sealed = 0,
        last_event = 0,
        double_claims = 0,
        fences_not_risen = 0,
        config_version = 1,
    }
    rules = cjson.decode(ARGV[3])
    fence = 0
    region_dirty, fence_dirty = true, true
    new_rules, new_document = ARGV[3], ARGV[4]
end

-- who leads now; a lease that ends later than any may was given by a clock that was set back since
local function leader_now()
    local leader = region.leader
    if leader and now < leader.until_ms and leader.until_ms - now <= MAX_LEADER_LEASE_MS then
        return leader
    end
    return nil
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

---- writing ---------------------------------------------------------------------------------

local function in_chunks(name, key, list)
    for from = 1, #list, CHUNK do
        call(name, key, unpack(list, from, min(from + CHUNK - 1, #list)))
    end
end

local function write_hash(key, dirty, packed)
    local set, drop = {}, {}
    for id in pairs(dirty) do
        local value = packed(id)
        if value then
            set[#set + 1] = id
            set[#set + 1] = value
        else
            drop[#drop + 1] = id
        end
    end
    in_chunks('HSET', key, set)
    in_chunks('HDEL', key, drop)
end

local function write_drivers()
    write_hash(POS, pos_dirty, function(id)
        local found = drivers[id]
        return found and (found.pos and msgpack(found.pos) or '')
    end)
    write_hash(DRIVERS, rec_dirty, function(id)
        local rec = drivers[id] and drivers[id].rec
        local kept = rec and (rec.claim or rec.undeliverable_ping or #rec.cooldowns > 0)
        return kept and msgpack(rec)
    end)
    local offered, trips, offered_no_more, trips_no_more = {}, {}, {}, {}
    for id, state in pairs(held) do
        if state == 'offered' then
            offered[#offered + 1] = 0
            offered[#offered + 1] = id
        else
            offered_no_more[#offered_no_more + 1] = id
        end
        if state == 'trip' then
            trips[#trips + 1] = 0
            trips[#trips + 1] = id
        else
            trips_no_more[#trips_no_more + 1] = id
        end
    end
    in_chunks('ZADD', OFFERED, offered)
    in_chunks('ZADD', TRIPS, trips)
    in_chunks('ZREM', OFFERED, offered_no_more)
    in_chunks('ZREM', TRIPS, trips_no_more)
end

local function write_requests()
    write_hash(REQUESTS, request_dirty, function(id)
        return requests[id] and msgpack(requests[id])
    end)
    local come, gone = {}, {}
    for id, is_new in pairs(ids) do
        if is_new then
            come[#come + 1] = 0
            come[#come + 1] = id
        else
            gone[#gone + 1] = id
        end
    end
    in_chunks('ZADD', IDS, come)
    in_chunks('ZREM', IDS, gone)
end

-- writes a sorted set's changes: member → score, or false
local function write_scores(key, changes)
    local set, drop = {}, {}
    for member, score in pairs(changes) do
        if score then
            set[#set + 1] = text(score)
            set[#set + 1] = member
        else
            drop[#drop + 1] = member
        end
    end
    in_chunks('ZADD', key, set)
    in_chunks('ZREM', key, drop)
end

local function write_fields(key, writes, drops)
    local set = {}
    for field, value in pairs(writes) do
        set[#set + 1] = field
        set[#set + 1] = value
    end
    in_chunks('HDEL', key, drops)
    in_chunks('HSET', key, set)
end

local function write_windows()
    write_hash(WINDOWS, window_dirty, function(field)
        local record = windows[tonumber(field)]
        return record and msgpack(record)
    end)
    write_fields(BATCHES, batch_writes, batch_drops)
    write_fields(REPORTS, report_writes, report_drops)
    write_hash(OWN, own_dirty, function(id)
        return own[id] and msgpack(own[id])
    end)
    write_fields(OWNPARTS, own_part_writes, own_part_drops)
end

local function signal()
    local told = { generation = region.generation, last_event = region.last_event }
    local oldest = oldest_window()
    if oldest then
        told.window = {
            seq = oldest.seq,
            closes_at_ms = oldest.closes_at_ms,
            overdue_at_ms = overdue_at(oldest),
            taken = oldest.phase ~= 'open',
        }
    end
    local next_due = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
    if next_due[2] then
        told.next_due_ms = tonumber(next_due[2])
    end
    return told
end

-- writes what was changed, and tells the node
local function commit(reply)
    write_drivers()
    write_requests()
    write_scores(PENDING, pending)
    write_scores(DUE, due)
    for key, at in pairs(due_if_absent) do
        call('ZADD', DUE, 'NX', text(at), key)
    end
    write_windows()
    for _, event in ipairs(events) do
        call('XADD', EVENTS, 'MAXLEN', '=', KEPT_EVENTS, unpack(event))
    end
    if fence_dirty then
        call('SET', FENCE, text(fence))
    end
    if region_dirty then
        call('HSET', META, 'state', msgpack(region))
    end
    if new_rules then
        call('HSET', META, 'rules', new_rules, 'document', new_document)
    end
    reply.t = now_us
    reply.g = region.generation
    reply.s = signal()
    call('SET', SIGNAL, msgpack({ t = now_us, s = reply.s }))
    return msgpack(reply)
end

---- the way into every script ---------------------------------------------------------------

-- Reads the region and compares its generation. Returns a reply when the command must not be
-- executed.
local function enter()
    local store_id = string.match(call('INFO', 'replication'), 'master_replid:(%w+)')
    local stored = call('HMGET', META, 'state', 'rules')
    if not stored[1] then
        if not known and ARGV[2] ~= '1' then
            return msgpack({ t = now_us, m = 'unknown' })
        end
        if ARGV[3] == '' then
            return msgpack({ t = now_us, m = 'defaults' })
        end
        new_region(store_id)
        if not known then
            return nil
        end
        begin_generation(known, store_id)
    else
        region = msgunpack(stored[1])
        rules = cjson.decode(stored[2])
        fence = tonumber(call('GET', FENCE)) or 0
        if (known and known > region.generation) or region.store_id ~= store_id then
            begin_generation(known or region.generation, store_id)
        elseif not known or known == region.generation then
            return nil
        end
    end
    return commit({
        n = begun,
        c = { generation = region.generation, quarantined_until_ms = quarantine() },
    })
end

local refused = enter()
if refused then
    return refused
end

local function ok(value) return commit({ a = { Ok = value } }) end
local function err(value) return commit({ a = { Err = value } }) end
