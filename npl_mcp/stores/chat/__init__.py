"""Rooms, messages, notifications and todos."""
