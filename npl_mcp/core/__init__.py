"""What all tools share: visible files, document sources, indices, the current call."""
