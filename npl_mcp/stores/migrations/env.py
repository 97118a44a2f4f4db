"""Alembic runs this file; the connection, with its transaction open, comes from the database module."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
