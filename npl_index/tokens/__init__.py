"""Token counts: exact, estimated, and of every section of a document."""
