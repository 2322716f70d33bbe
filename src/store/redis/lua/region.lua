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
