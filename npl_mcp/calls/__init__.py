"""One way for a call of a tool, from a name and arguments to an outcome; every transport uses it."""
