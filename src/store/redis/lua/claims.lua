-- Claims: where they begin and every way in which they end (`src/protocol/claim.rs`, `sweep.rs`).

-- the lease that was asked for, within the rails; without one the region's own
local function lease_of(asked)
    if not asked then
        return rules.lease_ms
    end
    return max(rules.offer_window_ms + CONFIRM_MARGIN_MS, min(MAX_LEASE_MS, asked))
end

local function is_ready(found)
    local pos = found.pos
    local undelivered = found.rec.undeliverable_ping
    return pos and pos[6] == 0 and (not undelivered or undelivered < pos[4])
end

local function is_fresh(found)
    return now - min(found.pos[4], found.pos[5]) <= rules.max_location_age_ms
end

local function ends_at(claim)
    local phase = claim.phase
    return phase.offered and phase.offered.lease_until_ms or phase.on_trip.until_ms
end

local function publish_claim(kind, driver_id, request_id, claim_fence, reason)
    if reason then
        publish(kind, 'request', request_id, 'driver', driver_id, 'fence', text(claim_fence),
            'reason', reason)
    else
        publish(kind, 'request', request_id, 'driver', driver_id, 'fence', text(claim_fence))
    end
end

-- Makes a claim: the only place where one begins. Returns its fence, or nothing when it would
-- break INV-1 or INV-2: that is counted and not made.
local function hold(pair, phase)
    local fence_next = rise(fence)
    local found, record = driver(pair.driver), request(pair.request)
    if not found or not record then
        return nil
    end
    if found.rec.claim or live(record) then
        region.double_claims = region.double_claims + 1
        region_dirty = true
        return nil
    end
    if fence_next <= fence then
        region.fences_not_risen = region.fences_not_risen + 1
        region_dirty = true
        return nil
    end
    fence, fence_dirty = fence_next, true
    local on_trip = phase.on_trip ~= nil
    if #record.cl >= REMEMBERED_CLAIMS then
        table.remove(record.cl, 1)
    end
    record.cl[#record.cl + 1] = {
        d = pair.driver,
        f = fence,
        o = 'live',
        c = on_trip and now or nil,
        l = on_trip and 'on_trip' or 'offered',
    }
    wait_no_more(pair.request, record)
    record.n = record.n + 1
    record.ed = nil
    record.st = on_trip and 'confirmed' or 'assigned'
    put_request(pair.request, record)
    due_remove(request_due_key(pair.request))
    found.rec.claim = {
        request_id = pair.request,
        fence = fence,
        eta = pair.eta,
        cost = pair.cost,
        source = pair.source,
        window_seq = pair.window_seq,
        made_ms = now,
        phase = phase,
        generation = region.generation,
    }
    rec_dirty[pair.driver] = true
    held[pair.driver] = on_trip and 'trip' or 'offered'
    due_set(driver_due_key(pair.driver), ends_at(found.rec.claim))
    local fields = {
        'request', pair.request, 'driver', pair.driver, 'fence', text(fence),
        'eta', text(pair.eta), 'cost', text(pair.cost),
    }
    local function tell(name, value)
        fields[#fields + 1] = name
        fields[#fields + 1] = value
    end
    if pair.window_seq then
        tell('window', text(pair.window_seq))
    end
    if pair.source == 'reconciled' then
        tell('reason', 'reconciled')
    else
        tell('source', pair.source)
    end
    if phase.offered then
        tell('lease_until', text(phase.offered.lease_until_ms))
        tell('lease', text(phase.offered.lease_ms))
    end
    publish(on_trip and 'confirmed' or 'assigned', unpack(fields))
    return fence
end

-- ends the driver's side of a claim
local function free(driver_id)
    local found = driver(driver_id)
    if not found then
        return
    end
    found.rec.claim = nil
    rec_dirty[driver_id] = true
    held[driver_id] = false
    local heard = found.pos and found.pos[5] or now
    due_set(driver_due_key(driver_id), later(heard, rules.driver_ttl_ms))
end

-- ends the request's side of its live claim
local function end_trace(request_id, outcome)
    local record = request(request_id)
    local trace = record and live(record)
    if trace then
        trace.o = outcome
        trace.e = now
        trace.l = 'available'
        request_dirty[request_id] = true
    end
end

local function keep_apart(driver_id, request_id)
    local found = driver(driver_id)
    if not found then
        return
    end
    local record = request(request_id)
    local kept = {}
    for _, cooldown in ipairs(found.rec.cooldowns) do
        if cooldown.request_id ~= request_id then
            kept[#kept + 1] = cooldown
        end
    end
    if #kept >= REMEMBERED_COOLDOWNS then
        table.remove(kept, 1)
    end
    kept[#kept + 1] = {
        request_id = request_id,
        rider_id = record and record.ri or nil,
        until_ms = later(now, rules.decline_cooldown_ms),
    }
    found.rec.cooldowns = kept
    rec_dirty[driver_id] = true
end

local function set_phase(driver_id, phase)
    local found = driver(driver_id)
    local claim = found and found.rec.claim
    if claim then
        claim.phase = phase
        claim.generation = region.generation
        rec_dirty[driver_id] = true
        held[driver_id] = phase.on_trip and 'trip' or 'offered'
    end
end

-- ends a request: it waits no more, and its memory begins to run
local function end_request(request_id, state)
    local record = request(request_id)
    if not record then
        return
    end
    wait_no_more(request_id, record)
    record.st = state
    record.ed = now
    request_dirty[request_id] = true
    due_set(request_due_key(request_id), later(now, rules.request_memory_ms))
end

local function expire_request(request_id)
    end_request(request_id, 'expired')
    publish('expired', 'request', request_id, 'reason', 'max_wait')
end

local collecting

-- a request lost its driver: it is pending again with its age, or over
local function return_request(request_id)
    local record = request(request_id)
    if not record then
        return
    end
    if record.ow then
        end_request(request_id, 'released')
        return
    end
    if now > record.dl then
        expire_request(request_id)
        return
    end
    record.en = collecting()
    wait_on(request_id, record)
    request_dirty[request_id] = true
    -- a request of exactly its longest wait may still be matched
    due_set(request_due_key(request_id), later(record.dl, 1))
end

-- nobody confirmed in time; or after data loss nobody knows of the offer
local function expire_lease(driver_id, request_id, claim_fence, reason)
    keep_apart(driver_id, request_id)
    free(driver_id)
    end_trace(request_id, 'lease_expired')
    publish_claim('lease_expired', driver_id, request_id, claim_fence, reason)
    return_request(request_id)
end

-- a trip ends, by a call or by its limit; the request stays confirmed
local function end_trip(driver_id, request_id, claim_fence, reason)
    free(driver_id)
    local found = driver(driver_id)
    local left = found and is_ready(found) and is_fresh(found) and 'available' or 'offline'
    end_trace(request_id, 'completed')
    local record = request(request_id)
    local trace = record and record.cl[#record.cl]
    if trace then
        trace.l = left
        trace.b = reason ~= 'trip_timeout' and reason ~= 'reconciled' or nil
        request_dirty[request_id] = true
    end
    end_request(request_id, 'confirmed')
    publish_claim('completed', driver_id, request_id, claim_fence, reason)
    return left
end

-- ends the driver's claim if its time is up
local function touch_driver(driver_id)
    local found = driver(driver_id)
    local claim = found and found.rec.claim
    if not claim or now < ends_at(claim) then
        return
    end
    if claim.phase.offered then
        expire_lease(driver_id, claim.request_id, claim.fence, nil)
    else
        end_trip(driver_id, claim.request_id, claim.fence, 'trip_timeout')
    end
end

-- ends the request's claim, or the request itself, if its time is up
local function touch_request(request_id)
    local record = request(request_id)
    if not record then
        return
    end
    local trace = live(record)
    if record.st == 'pending' and now > record.dl then
        expire_request(request_id)
    elseif trace then
        touch_driver(trace.d)
    elseif record.st ~= 'pending' and record.ed
        and later(record.ed, rules.request_memory_ms) <= now then
        forget_request(request_id)
        due_remove(request_due_key(request_id))
    end
end

---- claiming a pair -------------------------------------------------------------------------

local function cools_down(found, request_id, rider)
    for _, cooldown in ipairs(found.rec.cooldowns) do
        local same = cooldown.request_id == request_id
            or (rider ~= nil and cooldown.rider_id == rider)
        if now < cooldown.until_ms and same then
            return true
        end
    end
    return false
end

local function driver_loss(pair)
    local found = driver(pair.driver)
    if not found then
        return 'driver_unknown'
    end
    if found.rec.claim then
        return 'driver_claimed'
    end
    if not is_ready(found) then
        return 'driver_not_available'
    end
    local record = request(pair.request)
    if cools_down(found, pair.request, record and record.ri) then
        return 'cooldown'
    end
    if record and record.ex then
        for _, id in ipairs(record.ex) do
            if id == pair.driver then
                return 'excluded'
            end
        end
    end
    return nil
end

-- claims a driver for a request that may have one
local function claim_driver(pair, asked_lease)
    touch_driver(pair.driver)
    local loss = driver_loss(pair)
    if loss then
        return { lost = loss }
    end
    local lease_ms = lease_of(asked_lease)
    local lease_until_ms = now + lease_ms
    local made = hold(pair, { offered = { lease_until_ms = lease_until_ms, lease_ms = lease_ms } })
    if not made then
        return { lost = 'broken' }
    end
    return { claimed = { fence = made, lease_until_ms = lease_until_ms, lease_ms = lease_ms } }
end

---- calls about a claim ---------------------------------------------------------------------

local function claim_answer(key, state, at)
    return { Ok = {
        driver_id = key.driver_id,
        request_id = key.request_id,
        fence = key.fence,
        state = state,
        now_ms = at,
    } }
end

-- Finds the claim that a call is about. Returns nothing when it is live and open to the verb, else
-- the answer: a refusal, or the first answer again. What is overdue ends first.
local function live_claim(key, verb)
    touch_request(key.request_id)
    touch_driver(key.driver_id)
    local record = request(key.request_id)
    if not record then
        return { Err = quarantine() and 'not_held' or 'unknown_request' }
    end
    local trace
    for _, remembered in ipairs(record.cl) do
        if remembered.f == key.fence and remembered.d == key.driver_id then
            trace = remembered
            break
        end
    end
    if not trace then
        return { Err = quarantine() and 'not_held' or 'fence_stale' }
    end
    local outcome = trace.o
    if outcome == 'live' then
        if not trace.c then
            return verb == 'complete' and { Err = 'not_confirmed' } or nil
        end
        if verb == 'complete' then
            return nil
        end
        if verb == 'confirm' then
            return claim_answer(key, 'on_trip', trace.c)
        end
        return { Err = 'already_confirmed' }
    end
    if outcome == 'completed' then
        if verb == 'complete' then
            return claim_answer(key, trace.l, trace.e or now)
        end
        if verb == 'confirm' then
            return claim_answer(key, 'on_trip', trace.c or now)
        end
        return { Err = 'already_confirmed' }
    end
    if outcome == 'released' and verb == 'release' then
        return claim_answer(key, 'available', trace.e or now)
    end
    if verb == 'complete' then
        return { Err = 'not_confirmed' }
    end
    if outcome == 'lease_expired' then
        return { Err = 'lease_expired' }
    end
    if outcome == 'cancelled' then
        return { Err = 'request_closed' }
    end
    local state = record.st
    if state == 'cancelled' or state == 'expired' or state == 'released' then
        return { Err = 'request_closed' }
    end
    return { Err = 'fence_stale' }
end
