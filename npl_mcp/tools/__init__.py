"""The tools, one module per domain."""
