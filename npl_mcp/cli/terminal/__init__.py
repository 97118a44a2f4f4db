"""Arguments, help and output of the command lines."""
