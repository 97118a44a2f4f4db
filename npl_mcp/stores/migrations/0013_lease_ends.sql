-- The end of the claim that was last reported to its holder.
ALTER TABLE todo ADD COLUMN lease_told TEXT;
