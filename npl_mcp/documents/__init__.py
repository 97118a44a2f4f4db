"""Edits of Markdown files: sections, and change requests, which are Markdown files."""
