"""Browsing of documents by people: folders, their health, relations and maps."""
