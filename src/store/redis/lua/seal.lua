-- Ends a window with its report.
--
-- Promise      A window is sealed at most once, by its current owner (INV-4).
-- KEYS, ARGV   As in region.lua; the command is {window_seq, owner, body, decisions}, the last two
--              JSON.
-- Returns      Ok = the report; Err: window_lost.
-- Idempotent   On the owner: a repeat gets the first report.
-- Bounded by   One window; 1,000 reports and 50 decisions are kept.

local seq = command.window_seq
if seq <= region.last_sealed and seq > region.last_sealed - KEPT_REPORTS then
    local kept = call('HGET', REPORTS, text(seq))
    kept = kept and msgunpack(kept)
    if kept then
        if same_owner(kept.owner, command.owner) then
            return ok(told_report(kept))
        end
        return err('window_lost')
    end
end
local record = owned(seq, command.owner)
if not record then
    return err('window_lost')
end
local report = write_seal(record, command.owner, command.body, command.decisions)
reopen()
return ok(report)
