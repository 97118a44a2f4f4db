"""What is kept in the database, one package or module per domain."""
