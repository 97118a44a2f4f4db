"""What is kept on disk, one module per domain."""
