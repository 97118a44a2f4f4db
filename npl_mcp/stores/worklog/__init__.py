"""Worklogs: numbered entries of agents, and the folder they are exported to."""
