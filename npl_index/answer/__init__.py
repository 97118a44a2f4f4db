"""From ranked sections to the answer."""
