"""Worklogs: numbered entries of agents, and the folder for their export."""
