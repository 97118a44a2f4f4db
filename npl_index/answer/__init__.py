"""Ranked sections to the answer that is sent."""
