"""Programs for this repository: the demonstration and the generated documentation."""
