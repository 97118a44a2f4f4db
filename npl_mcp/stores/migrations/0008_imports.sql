-- Worklogs are imported in one transaction. Rows of interrupted imports of earlier versions are removed.

DELETE FROM worklog_entry WHERE session_number IN (
    SELECT number FROM worklog_session WHERE project LIKE 'importing:%');

DELETE FROM worklog_session WHERE project LIKE 'importing:%';
