"""Inverted index over sections, scores, and the relevance cut."""
