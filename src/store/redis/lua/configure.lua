-- Sets the configuration for what comes next; what was promised stays.
--
-- Promise      The version rises by one with each change; the same again changes nothing.
-- KEYS, ARGV   As in region.lua; the command is {rules, document (JSON), window_ms, expected,
--              invalid, actor, changes}; `invalid` is set by the node, which checks the rules.
-- Returns      Ok = {config_version}; Err: {version_mismatch = {present}}, 'invalid'.
-- Idempotent   On the configuration.
-- Bounded by   64 KiB, which the node sees to.

local present = region.config_version
-- first of all, so that the repeat of a change that was made is answered as it was
local stored_rules = new_rules or call('HGET', META, 'rules')
local stored_document = new_document or call('HGET', META, 'document')
if command.rules == stored_rules and command.document == stored_document then
    return ok({ config_version = present })
end
if command.expected and command.expected ~= present then
    return err({ version_mismatch = { present = present } })
end
if command.invalid then
    return err('invalid')
end
if command.window_ms ~= rules.window_ms and region.anchor then
    -- the new grid starts at the last close that the old one promised
    local passed = next_close(region.anchor, rules.window_ms, now) - rules.window_ms
    local last = window(region.last_window)
    region.anchor = last and max(last.closes_at_ms, passed) or passed
end
new_rules, new_document = command.rules, command.document
region.config_version = present + 1
region_dirty = true
publish('config_changed', 'actor', command.actor, 'changes', command.changes,
    'config_version', text(region.config_version))
return ok({ config_version = region.config_version })
