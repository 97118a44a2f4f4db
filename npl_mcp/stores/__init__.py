"""The tables of the database: one package or module per domain."""
