"""Change requests: Markdown files in the folders of projects."""
