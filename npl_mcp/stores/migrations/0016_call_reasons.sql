-- Reasons of failed calls, and absent words of questions.

ALTER TABLE tool_call ADD COLUMN message TEXT;

-- Shortened; only if contexts are logged.
ALTER TABLE tool_call ADD COLUMN arguments TEXT;

-- A JSON list of words; only if contexts are logged.
ALTER TABLE tool_call ADD COLUMN absent TEXT;

-- 1 if the call requested a selector that an earlier answer offered to its caller.
ALTER TABLE tool_call ADD COLUMN followed INTEGER;
