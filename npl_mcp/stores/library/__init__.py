"""Libraries: a team's Markdown files, with revisions."""
