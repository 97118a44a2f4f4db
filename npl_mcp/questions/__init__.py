"""Questions that a set of documents has to answer: their files, and what the first answer to each holds."""
