"""Whole items, such as components and agents, with their front matter and versions."""
