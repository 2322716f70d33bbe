-- After data loss the dispatch tier tells what is true: trips under way, requests that wait.
--
-- Promise      What is told is held, under new fences where the store had lost it; what contradicts
--              a telling ends. Told twice is told once.
-- KEYS, ARGV   As in region.lua; the command is {generation, on_trip = {{driver, request}, …},
--              pending = {{id, fp, body, …}, …}, done}.
-- Returns      Ok = {restored, pending, rejected_trips, rejected_requests};
--              Err: {generation_changed = {generation}}, too_large.
-- Idempotent   On the telling.
-- Bounded by   1,000 trips and 1,000 requests.

if command.generation ~= region.generation then
    return err({ generation_changed = { generation = region.generation } })
end
if #command.on_trip > MAX_RECONCILED_A_STEP or #command.pending > MAX_RECONCILED_A_STEP then
    return err('too_large')
end

-- ends a claim that the store still holds and the dispatch tier does not know
local function end_untold(driver_id)
    local found = driver(driver_id)
    local claim = found and found.rec.claim
    if not claim then
        return
    end
    if claim.phase.offered then
        expire_lease(driver_id, claim.request_id, claim.fence, 'reconciled')
    else
        end_trip(driver_id, claim.request_id, claim.fence, 'reconciled')
    end
end

-- Returns the fence under which the trip is held, or nothing.
local function restore(driver_id, request_id)
    touch_driver(driver_id)
    touch_request(request_id)
    local found = driver(driver_id)
    local claim = found and found.rec.claim
    if claim and claim.request_id == request_id and claim.phase.on_trip then
        -- the store did not lose this one: its fence is still the dispatch tier's
        claim.generation = region.generation
        rec_dirty[driver_id] = true
        return claim.fence
    end
    local record = request(request_id)
    local last = record and record.cl[#record.cl]
    if last and last.d == driver_id and last.b then
        -- a telling that comes late: the trip was held, driven and completed since
        return last.f
    end
    local trace = record and live(record)
    local holder = trace and driver(trace.d)
    local held_claim = holder and holder.rec.claim
    local told_elsewhere = held_claim and held_claim.generation == region.generation
    if told_elsewhere or (claim and claim.generation == region.generation) then
        -- two trips told of one driver or one request: the first stands
        return nil
    end
    if trace then
        end_untold(trace.d)
    end
    end_untold(driver_id)
    if not request(request_id) then
        put_request(request_id, {
            at = now,
            dl = later(now, rules.max_wait_ms),
            st = 'released',
            en = region.last_window,
            n = 0,
            cl = {},
        })
    end
    driver_or_new(driver_id)
    return hold({
        request = request_id,
        driver = driver_id,
        eta = 0,
        cost = 0,
        source = 'reconciled',
    }, { on_trip = { until_ms = later(now, rules.max_trip_ms) } })
end

local driver_ids, request_ids = {}, {}
for i, trip in ipairs(command.on_trip) do
    driver_ids[i], request_ids[i] = trip[1], trip[2]
end
read_drivers(driver_ids)
read_requests(request_ids)
local restored, rejected_trips = {}, {}
for i, trip in ipairs(command.on_trip) do
    local made = restore(trip[1], trip[2])
    if made then
        restored[#restored + 1] = { driver_id = trip[1], request_id = trip[2], fence = made }
    else
        rejected_trips[#rejected_trips + 1] = { index = i - 1, id = trip[2], code = 'id_conflict' }
    end
end
local taken, rejected = intake_all(command.pending)
if command.done then
    region.reconciling = ''
    region_dirty = true
end
return ok({
    restored = restored,
    pending = taken,
    rejected_trips = rejected_trips,
    rejected_requests = rejected,
})
