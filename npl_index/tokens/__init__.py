"""Token counts: exact counts, estimates, and the counts of a document's sections."""
