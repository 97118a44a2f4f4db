"""Files: find, read and watch the documents below search roots."""
