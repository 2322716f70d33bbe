-- The way into every script: the generation is compared before anything else (INV-4).

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
        local last = known or region.generation
        -- every generation but that of a new region begins with a quarantine
        local begun_unaware = last < region.generation and not region.quarantined_until_ms
        if last > region.generation or begun_unaware or region.store_id ~= store_id then
            begin_generation(last, store_id)
        elseif last == region.generation then
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
