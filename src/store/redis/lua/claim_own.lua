-- Claims pairs of a caller's own window, by the same step as the region's windows do. The request
-- comes along: an unmatched one leaves no record.
--
-- Promise      As claim_batch.lua, for the node that runs the window.
-- KEYS, ARGV   As in region.lua; the command is {window_id, runner, batch_no, fp, lease_ms, pairs}, a
--              pair {request = {id, fp, body, …}, driver, eta, cost}.
-- Returns      Ok = {outcomes} as claim_batch.lua, and already_pending;
--              Err: window_lost, {quarantined}, too_large, other_pairs.
-- Idempotent   On (runner, batch_no): a repeat gets the first answer.
-- Bounded by   250 pairs, 64 batches a runner.

if #command.pairs > MAX_PAIRS_A_BATCH then
    return err('too_large')
end
local to = quarantine()
if to then
    return err({ quarantined = { until_ms = to } })
end
local id, number = command.window_id, command.batch_no
local record = call('HGET', OWN, id)
record = record and msgunpack(record)
if not record or record.done or record.runner ~= command.runner then
    return err('window_lost')
end
local field = 'b' .. text(number) .. ':' .. id
local first = call('HGET', OWNPARTS, field)
if first then
    first = msgunpack(first)
    if first.fp ~= command.fp then
        return err('other_pairs')
    end
    return ok({ outcomes = first.outcomes })
end
if #record.batch_nos >= MAX_BATCHES_A_WINDOW then
    return err('too_large')
end

local request_ids, driver_ids = {}, {}
for i, pair in ipairs(command.pairs) do
    request_ids[i], driver_ids[i] = pair.request.id, pair.driver
end
read_requests(request_ids)
read_drivers(driver_ids)

local function claim_pair(pair)
    local draft = pair.request
    touch_request(draft.id)
    local before = request(draft.id)
    if before then
        local state = before.st
        if state == 'pending' then
            return { lost = 'already_pending' }
        end
        if state == 'assigned' or (state == 'confirmed' and live(before)) then
            return { lost = 'already_assigned' }
        end
        if state ~= 'released' then
            return { lost = 'request_closed' }
        end
    end
    local since = draft.at or now
    local traces = {}
    for i, trace in ipairs(before and before.cl or {}) do
        traces[i] = trace
    end
    -- the record comes first, so that the claim finds its rider and exclusions
    put_request(draft.id, {
        d = draft.body,
        fp = draft.fp,
        ri = draft.rider,
        ex = draft.exclude,
        at = since,
        dl = later(since, draft.wait or rules.max_wait_ms),
        st = 'released',
        en = region.last_window,
        ow = id,
        n = before and before.n or 0,
        cl = traces,
    })
    local outcome = claim_driver({
        request = draft.id,
        driver = pair.driver,
        eta = pair.eta,
        cost = pair.cost,
        source = 'own',
    }, command.lease_ms)
    if outcome.lost then
        if before then
            put_request(draft.id, before)
        else
            forget_request(draft.id)
        end
    end
    return outcome
end

local outcomes, claimed = {}, {}
for i, pair in ipairs(command.pairs) do
    local outcome = claim_pair(pair)
    outcomes[i] = outcome
    if outcome.claimed then
        claimed[#claimed + 1] = {
            request_id = pair.request.id,
            driver_id = pair.driver,
            fence = outcome.claimed.fence,
            lease_until_ms = outcome.claimed.lease_until_ms,
            lease_ms = outcome.claimed.lease_ms,
            eta = pair.eta,
            cost = pair.cost,
        }
    end
end
if #claimed > 0 then
    record.claims = record.claims + 1
    own_part_writes['c' .. text(record.claims) .. ':' .. id] = msgpack(claimed)
end
record.batch_nos[#record.batch_nos + 1] = number
own[id], own_dirty[id] = record, true
own_part_writes[field] = msgpack({ fp = command.fp, outcomes = outcomes })
return ok({ outcomes = outcomes })
