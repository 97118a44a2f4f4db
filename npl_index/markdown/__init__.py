"""Markdown bytes to a tree of sections, and edits of one section."""
