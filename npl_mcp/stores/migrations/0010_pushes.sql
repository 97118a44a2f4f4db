-- The libraries that the owner of a token may push: a JSON list; NULL means none.
ALTER TABLE access_token ADD COLUMN pushes TEXT;
