-- Claims pairs for a window, each for itself: driver, request and window are compared and written
-- in this one step.
--
-- Promise      Only the window's current owner claims (INV-4). No driver and no request has two
--              live claims (INV-1); every claim's fence is higher than any before (INV-2).
-- KEYS, ARGV   As in region.lua; the command is {window_seq, owner, batch_no, fp, pairs}, a pair
--              {request, driver, eta, cost}.
-- Returns      Ok = {outcomes = {{claimed = {fence, lease_until_ms, lease_ms}} | {lost = reason}}};
--              reasons: driver_claimed, driver_unknown, driver_not_available, cooldown, excluded,
--              request_unknown, already_assigned, request_closed, broken;
--              Err: window_lost, too_large, other_pairs.
-- Idempotent   On (owner, batch_no): a repeat gets the first answer, until the seal.
-- Bounded by   250 pairs, 64 batches an owner.

if #command.pairs > MAX_PAIRS_A_BATCH then
    return err('too_large')
end
local seq, number = command.window_seq, command.batch_no
local record = owned(seq, command.owner)
if not record then
    return err('window_lost')
end
local field = text(seq) .. ':' .. text(number)
local first = call('HGET', BATCHES, field)
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

local source = command.owner.holder.leader and 'batch' or 'fallback'
local request_ids, driver_ids = {}, {}
for i, pair in ipairs(command.pairs) do
    request_ids[i], driver_ids[i] = pair[1], pair[2]
end
read_requests(request_ids)
read_drivers(driver_ids)

local function claim_pair(pair)
    touch_request(pair.request)
    local found = request(pair.request)
    if not found then
        return { lost = 'request_unknown' }
    end
    if found.st == 'assigned' or found.st == 'confirmed' then
        return { lost = 'already_assigned' }
    end
    if found.st ~= 'pending' then
        return { lost = 'request_closed' }
    end
    return claim_driver(pair, nil)
end

local outcomes, claimed = {}, 0
for i, pair in ipairs(command.pairs) do
    outcomes[i] = claim_pair({
        request = pair[1],
        driver = pair[2],
        eta = pair[3],
        cost = pair[4],
        source = source,
        window_seq = seq,
    })
    if outcomes[i].claimed then
        claimed = claimed + 1
    end
end
record.claimed = record.claimed + claimed
record.next_batch = max(record.next_batch, min(number + 1, 4294967295))
record.batch_nos[#record.batch_nos + 1] = number
touch_window(seq)
batch_writes[field] = msgpack({ fp = command.fp, outcomes = outcomes })
return ok({ outcomes = outcomes })
