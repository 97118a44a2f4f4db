-- Worklogs are imported in one transaction; what an import of an earlier version left that was interrupted goes.

DELETE FROM worklog_entry WHERE session_number IN (
    SELECT number FROM worklog_session WHERE project LIKE 'importing:%');

DELETE FROM worklog_session WHERE project LIKE 'importing:%';
