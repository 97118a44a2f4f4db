"""Markdown to sections, sections to answers: find, parse, select, rank and pack Markdown for agents."""
