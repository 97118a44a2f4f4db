"""Selectors: compile them, select sections with them, and write the selector of a section."""
