"""Worklogs: numbered entries of agents, and their import from the predecessor's folder."""
