"""Tools of earlier versions. A call to one answers NOT_FOUND with its replacement."""

from __future__ import annotations

from collections.abc import Mapping

REMOVED: Mapping[str, str] = {}
"""What to do instead, by the name of the removed tool, as a sentence without a full stop."""
