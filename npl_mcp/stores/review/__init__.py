"""Reviews of artifacts: comments, and annotated copies."""
