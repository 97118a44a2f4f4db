-- The outcomes of questions in the log of calls.

-- 'found', 'weak' or 'nothing'; NULL for calls without a question.
ALTER TABLE tool_call ADD COLUMN outcome TEXT;

-- Sections or hits of the answer.
ALTER TABLE tool_call ADD COLUMN found INTEGER;

-- Digest of the token's name, or of the process or client.
ALTER TABLE tool_call ADD COLUMN session TEXT;

-- 1 if the same session asked a similar question shortly before.
ALTER TABLE tool_call ADD COLUMN again INTEGER;
