"""What the user wants: settings and the environment."""
