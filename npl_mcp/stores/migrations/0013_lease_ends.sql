-- The end of the claim of which its holder was told.
ALTER TABLE todo ADD COLUMN lease_told TEXT;
