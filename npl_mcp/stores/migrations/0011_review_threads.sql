-- Threads of review comments, which are resolved and reopened, and the verdict of a review.

ALTER TABLE review_comment ADD COLUMN reply_to INTEGER;

ALTER TABLE review_comment ADD COLUMN resolved_at TEXT;

ALTER TABLE review_comment ADD COLUMN resolved_by TEXT;

-- approved or changes_needed
ALTER TABLE review ADD COLUMN verdict TEXT;
