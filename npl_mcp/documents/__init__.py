"""What changes Markdown files: sections, and change requests, which are such files."""
