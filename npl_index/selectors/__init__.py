"""Selectors: text to value, value to sections, sections back to text."""
