"""Shared parts of all stores: the database, errors, checks of arguments, pages."""
