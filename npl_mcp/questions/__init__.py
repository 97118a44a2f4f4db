"""Questions that documents must answer: question files, and the outcome of each first answer."""
