"""Tools of earlier versions. A call to one answers NOT_FOUND with its replacement."""

from __future__ import annotations

from collections.abc import Mapping

_SESSION = "read its parts with session_get, chat_get_feed, artifact_history, review_get and worklog_read"

_LIBRARIES = "'npl-mcp library export DIR' writes libraries as files; serve these with --root DIR"

_TEMPLATES = "create_cr takes the template of its type"

REMOVED: Mapping[str, str] = {
    "board_crs": "list_crs has the status of each change request",
    "calls_figures": "the page Usage has the calls, and /metrics has their sums",
    "calls_list": "the page Usage has the calls, as JSON at /usage.json",
    "chat_thread": "chat_get_feed with since returns the events after any event, each with reply_to_id",
    "content_tailored": "npl_load_tailored has the same with format=text",
    "get_cr_template": _TEMPLATES,
    "list_cr_templates": _TEMPLATES,
    "documents_links": "broken links of a folder are on its page Health",
    "documents_section": "npl_load_tailored with a selector has the text and its digest",
    "health_look": "the page Health has the defects, as JSON at /documents/health.json",
    "library_contents": _LIBRARIES,
    "library_push": _LIBRARIES,
    "library_state": _LIBRARIES,
    "library_upload": _LIBRARIES,
    "npl_ask": "npl_load_tailored returns the same sections; the page Ask shows the fate of each",
    "session_export": _SESSION,
    "session_news": _SESSION,
    "session_timeline": _SESSION,
    "worklog_open": "worklog_init starts or resumes a session",
    "worklog_current": "worklog_status without session_id describes the current session",
    "worklog_export": "the command npl-mcp worklog export writes the files of a session",
    "worklog_import": "the command npl-mcp worklog import takes in the files of .npl/sessions",
    "worklog_view": "worklog_read with since and peek=true returns any entries",
    "worklog_news": "worklog_read with since, peek=true and wait waits for entries",
}
"""The replacement, by the name of the removed tool, as a sentence without a full stop."""
