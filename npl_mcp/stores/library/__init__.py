"""Libraries: Markdown of a team, with revisions."""
