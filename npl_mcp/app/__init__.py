"""Shared parts of all tools: visible files, document sources, indices, the current call."""
