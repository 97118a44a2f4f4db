"""The section tree under a budget, as values and as text, and the map of documents."""
