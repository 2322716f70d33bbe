-- Writing what was changed, once, at the end.

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
