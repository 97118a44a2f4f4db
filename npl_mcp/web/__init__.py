"""Web pages for people, rendered on the server from the results of tools."""
