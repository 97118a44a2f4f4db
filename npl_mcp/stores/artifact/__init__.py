"""Artifacts: files with revisions."""
