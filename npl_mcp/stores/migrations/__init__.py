"""Migrations of the database, run by Alembic; one that was released is never edited."""
