"""Browsing of documents by people: folders and their health."""
