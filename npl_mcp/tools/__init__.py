"""The tools, one module per domain.

A tool is a plain function; nothing here knows the protocol but :mod:`npl_mcp.tools.registry`.
"""

from npl_mcp.tools import artifact, chat, npl, review, session, utility, worklog

DOMAINS = (npl, session, artifact, chat, review, worklog, utility)

SPECS = tuple(spec for domain in DOMAINS for spec in domain.TOOLS)
"""All tools in the order in which they are listed; the order never changes, so prompt caches hit."""
