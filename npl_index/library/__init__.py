"""Which file is meant, what is in it, and what has changed."""
