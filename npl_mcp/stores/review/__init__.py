"""Reviews of artifacts: comments, and copies that show them."""
