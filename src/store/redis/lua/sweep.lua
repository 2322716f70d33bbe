-- Ends what is due: leases, waits, trips, memories; after a reconcile the trips that nobody told.
--
-- Promise      A due time is a hint: the record is looked at again in this step (INV-3).
-- KEYS, ARGV   As in region.lua; the command is {}.
-- Returns      {looked_at, more}.
-- Idempotent   Doing it twice is doing it once.
-- Bounded by   250 due items, 250 untold trips, 1,000 old events.

local looked_at, more = sweep_due()

local function sweep_untold()
    local after = region.reconciling
    if not after then
        return
    end
    region_dirty = true
    local seen, from = {}, after == '' and '-' or '(' .. after
    while #seen < MAX_SWEPT_A_STEP do
        local page = call('ZRANGEBYLEX', TRIPS, from, '+', 'LIMIT', 0, MAX_SWEPT_A_STEP)
        for _, id in ipairs(page) do
            -- one that ended in this step is no trip any more
            if held[id] == nil or held[id] == 'trip' then
                seen[#seen + 1] = id
            end
            if #seen == MAX_SWEPT_A_STEP then
                break
            end
        end
        if #page < MAX_SWEPT_A_STEP then
            break
        end
        from = '(' .. page[#page]
    end
    region.reconciling = #seen == MAX_SWEPT_A_STEP and seen[#seen] or nil
    read_drivers(seen)
    for _, id in ipairs(seen) do
        local claim = driver(id).rec.claim
        if claim and claim.generation ~= region.generation then
            end_trip(id, claim.request_id, claim.fence, 'reconciled')
        end
    end
end

-- drops events over an hour old
local function trim_events()
    local function is_old(event)
        return tonumber(event[2][4]) + EVENT_MEMORY_MS < now
    end
    local first = call('XRANGE', EVENTS, '-', '+', 'COUNT', 1)
    if not first[1] or not is_old(first[1]) then
        return
    end
    local page = call('XRANGE', EVENTS, '-', '+', 'COUNT', MAX_TRIMMED_A_STEP)
    local last
    for _, event in ipairs(page) do
        if not is_old(event) then
            break
        end
        last = event[1]
    end
    local number = tonumber(string.match(last, '^(%d+)'))
    call('XTRIM', EVENTS, 'MINID', '=', text(number + 1) .. '-0')
end

sweep_untold()
mend_closes()
reopen()
trim_events()
return commit({ a = { looked_at = looked_at, more = more or region.reconciling ~= nil } })
