"""Pages for people: made on the server from the answers of tools."""
