-- Windows: opening, owning, sealing; and the sweep of what is due (`src/protocol/window.rs`,
-- `report.rs`, `sweep.rs`).

-- the first point of the grid after `at`
local function next_close(anchor, step, at)
    step = max(step, 1)
    return later(anchor, (floor((at - anchor) / step) + 1) * step)
end

local function unsealed_windows()
    return region.last_window - region.last_sealed
end

local function touch_window(seq)
    window_dirty[text(seq)] = true
end

-- What a clock promised that was set back since would come late by as much: it is promised anew.
local function mend_closes()
    if not region.anchor then
        return
    end
    for seq = region.last_sealed + 1, region.last_window do
        local record = window(seq)
        local taken = record.phase ~= 'open' and record.phase.taken
        if taken and taken.at_ms > now then
            taken.at_ms = now
            record.closes_at_ms = min(record.closes_at_ms, now)
            touch_window(seq)
        elseif not taken and record.closes_at_ms - now > record.window_ms then
            record.closes_at_ms = next_close(region.anchor, record.window_ms, now)
            due_set(window_due_key(seq), record.closes_at_ms)
            touch_window(seq)
        end
    end
end

-- the window that collects now, opened if there is none
function collecting()
    mend_closes()
    local last = window(region.last_window)
    if last and now < last.closes_at_ms then
        return last.seq
    end
    local seq = region.last_window + 1
    if quarantine() or unsealed_windows() >= MAX_UNSEALED_WINDOWS then
        -- no windows in a quarantine, nor more than may be: the next one decides what waits
        return seq
    end
    region.anchor = region.anchor or now
    local closes_at_ms = next_close(region.anchor, rules.window_ms, now)
    region.last_window = seq
    region_dirty = true
    due_set(window_due_key(seq), closes_at_ms)
    windows[seq] = {
        seq = seq,
        opened_at_ms = now,
        closes_at_ms = closes_at_ms,
        window_ms = rules.window_ms,
        budget_ms = rules.budget_ms,
        grace_ms = rules.grace_ms,
        config_version = region.config_version,
        arrivals = 0,
        phase = 'open',
        claimed = 0,
        next_batch = 0,
        batch_nos = {},
    }
    touch_window(seq)
    return seq
end

-- requests pending without a window to decide them get one
local function reopen()
    if unsealed_windows() == 0 and count_pending() > 0 then
        collecting()
    end
end

local function same_owner(a, b)
    if not a or not b or a.generation ~= b.generation then
        return false
    end
    local l, m = a.holder.leader, b.holder.leader
    if l or m then
        return l and m and l.epoch == m.epoch and l.nonce == m.nonce
    end
    l, m = a.holder.fallback, b.holder.fallback
    return l and m and l.take == m.take and l.nonce == m.nonce
end

-- whether an owner may act: of this generation, and a leader that was not followed by another
local function owner_lives(owner)
    local leader = owner.holder.leader
    return owner.generation == region.generation
        and (not leader or leader.epoch == region.epoch)
end

-- the window, if `owner` is its current owner (INV-4)
local function owned(seq, owner)
    if quarantine() then
        return nil
    end
    local record = window(seq)
    local taken = record and record.phase ~= 'open' and record.phase.taken
    if taken and same_owner(taken.owner, owner) and owner_lives(owner) then
        return record
    end
    return nil
end

local function drop_batches(record)
    for _, number in ipairs(record.batch_nos) do
        batch_drops[#batch_drops + 1] = text(record.seq) .. ':' .. text(number)
    end
    record.batch_nos = {}
    record.next_batch = 0
end

-- the report as it is told: what the store knows, and the decider's part as it came
local function told_report(kept)
    return {
        window_seq = kept.window_seq,
        window_ms = kept.window_ms,
        config_version = kept.config_version,
        generation = kept.generation,
        epoch = kept.epoch,
        opened_at_ms = kept.opened_at_ms,
        closed_at_ms = kept.closed_at_ms,
        sealed_at_ms = kept.sealed_at_ms,
        assigned = kept.assigned,
        body = kept.body,
    }
end

-- writes the seal of the oldest window; what is left pending belongs to the next by itself
local function write_seal(record, owner, body, decisions)
    local seq = record.seq
    local leader = owner and owner.holder.leader
    local kept = {
        window_seq = seq,
        window_ms = record.window_ms,
        config_version = record.config_version,
        generation = region.generation,
        epoch = leader and leader.epoch or region.epoch,
        opened_at_ms = record.opened_at_ms,
        closed_at_ms = record.closes_at_ms,
        sealed_at_ms = now,
        assigned = record.claimed,
        owner = owner,
        body = body,
    }
    drop_batches(record)
    windows[seq] = false
    touch_window(seq)
    due_remove(window_due_key(seq))
    region.last_sealed = seq
    region_dirty = true
    report_writes[text(seq)] = msgpack(kept)
    if decisions then
        report_writes['d' .. text(seq)] = decisions
    end
    report_drops[#report_drops + 1] = text(seq - KEPT_REPORTS)
    report_drops[#report_drops + 1] = 'd' .. text(seq - KEPT_DECISIONS)
    return told_report(kept)
end

-- a request arrives: it belongs to the collecting window, which may close early for it
local function arrive()
    local last = window(region.last_window)
    if unsealed_windows() >= MAX_UNSEALED_WINDOWS and last.closes_at_ms <= now then
        -- more windows wait than may: the oldest ends undecided, and what it held carries over
        write_seal(oldest_window(), nil, nil, nil)
    end
    local seq = collecting()
    local record = window(seq)
    if not record then
        -- in a quarantine; the first window after it
        return seq, later(quarantine() or now, rules.window_ms)
    end
    record.arrivals = min(record.arrivals + 1, 4294967295)
    if record.arrivals >= rules.max_requests then
        local early = max(now, record.opened_at_ms + rules.min_window_ms)
        if early < record.closes_at_ms then
            record.closes_at_ms = early
            due_set(window_due_key(seq), early)
        end
    end
    touch_window(seq)
    return seq, record.closes_at_ms
end

---- intake ----------------------------------------------------------------------------------

local function intake_one(draft)
    touch_request(draft.id)
    local before = request(draft.id)
    -- a caller's own window is done with a released one: the id may come again
    if before and before.st ~= 'released' then
        if before.iw and before.fp == draft.fp then
            return {
                id = draft.id,
                state = 'pending',
                window_seq = before.iw,
                closes_at_ms = before.ic,
                replayed = true,
            }
        end
        return nil, 'id_conflict'
    end
    local since = draft.at or now
    if since > later(now, rules.max_clock_skew_ms) then
        return nil, 'requested_at_in_future'
    end
    local deadline = later(since, draft.wait or rules.max_wait_ms)
    if now > deadline then
        return nil, 'already_expired'
    end
    if count_pending() >= rules.max_pending or count_requests() >= MAX_REQUESTS then
        return nil, 'region_full'
    end
    local seq, closes_at_ms = arrive()
    local record = {
        d = draft.body,
        fp = draft.fp,
        ri = draft.rider,
        ex = draft.exclude,
        at = since,
        dl = deadline,
        en = seq,
        iw = seq,
        ic = closes_at_ms,
        n = before and before.n or 0,
        cl = before and before.cl or {},
    }
    put_request(draft.id, record)
    wait_on(draft.id, record)
    due_set(request_due_key(draft.id), later(deadline, 1))
    publish('requested', 'request', draft.id, 'window', text(seq))
    return { id = draft.id, state = 'pending', window_seq = seq, closes_at_ms = closes_at_ms }
end

local function intake_all(drafts)
    local taken, rejected, seen, ids = {}, {}, {}, {}
    for i = 1, min(#drafts, MAX_REQUESTS_A_STEP) do
        ids[i] = drafts[i].id
    end
    read_requests(ids)
    for i, draft in ipairs(drafts) do
        local answer, code
        if i > MAX_REQUESTS_A_STEP then
            code = 'too_large'
        elseif seen[draft.id] then
            code = 'duplicate_in_batch'
        else
            seen[draft.id] = true
            answer, code = intake_one(draft)
        end
        if answer then
            taken[#taken + 1] = answer
        else
            rejected[#rejected + 1] = { index = i - 1, id = draft.id, code = code }
        end
    end
    return taken, rejected
end

---- sweeping --------------------------------------------------------------------------------

-- a due time is a hint: the record decides, and says when to look again
local function driver_due(id)
    touch_driver(id)
    local found = driver(id)
    if not found then
        return
    end
    local claim = found.rec.claim
    local at
    if claim then
        at = ends_at(claim)
    else
        at = found.pos and later(found.pos[5], rules.driver_ttl_ms) or now
    end
    if at <= now and not claim then
        forget_driver(id)
        due_remove(driver_due_key(id))
    else
        due_set(driver_due_key(id), at)
    end
end

local function request_due(id)
    touch_request(id)
    local record = request(id)
    if not record then
        return
    end
    -- assigned and on-trip ones have no due time of their own: their driver has
    if record.ed then
        due_set(request_due_key(id), later(record.ed, rules.request_memory_ms))
    elseif record.st == 'pending' then
        due_set(request_due_key(id), later(record.dl, 1))
    end
end

local function forget_own(id)
    local record = call('HGET', OWN, id)
    record = own[id] or (record and msgunpack(record))
    if not record then
        return
    end
    for _, number in ipairs(record.batch_nos) do
        own_part_drops[#own_part_drops + 1] = 'b' .. text(number) .. ':' .. id
    end
    for chunk = 1, record.claims do
        own_part_drops[#own_part_drops + 1] = 'c' .. text(chunk) .. ':' .. id
    end
    own_part_drops[#own_part_drops + 1] = 'r:' .. id
    own[id] = false
    own_dirty[id] = true
end

-- Ends what is due, at most 250 items, in the order of (instant, key). What the items themselves
-- make due at once is part of it. Returns the number looked at and whether more is due.
local function sweep_due()
    local stored, at_stored, read, exhausted = {}, 1, 0, false
    -- the next stored key that this step has not changed
    local function head()
        while true do
            if at_stored > #stored then
                if exhausted then
                    return nil
                end
                stored = call('ZRANGEBYSCORE', DUE, '-inf', text(now), 'WITHSCORES',
                    'LIMIT', read, MAX_SWEPT_A_STEP)
                at_stored = 1
                read = read + #stored / 2
                exhausted = #stored < 2 * MAX_SWEPT_A_STEP
            else
                local key = stored[at_stored]
                if due[key] == nil then
                    return tonumber(stored[at_stored + 1]), key
                end
                at_stored = at_stored + 2
            end
        end
    end
    local function first()
        local at, key = head()
        for other, other_at in pairs(due_now) do
            if not key or other_at < at or (other_at == at and other < key) then
                at, key = other_at, other
            end
        end
        return key
    end
    local looked_at = 0
    while looked_at < MAX_SWEPT_A_STEP do
        local key = first()
        if not key then
            break
        end
        due_remove(key)
        looked_at = looked_at + 1
        local kind, id = string.sub(key, 1, 1), string.sub(key, 2)
        if kind == '1' then
            driver_due(id)
        elseif kind == '2' then
            request_due(id)
        elseif kind == '4' then
            forget_own(id)
        end
        -- a window waits for its taker; its close and a quarantine's end are for those who watch
    end
    return looked_at, first() ~= nil
end
