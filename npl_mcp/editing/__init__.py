"""Change files that other programs write as well: by section, only as expected, whole or not at all."""
