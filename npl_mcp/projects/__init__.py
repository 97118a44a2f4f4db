"""Other things found in a project: its ``directive/`` folder and its git repository."""
