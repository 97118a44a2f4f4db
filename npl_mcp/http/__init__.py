"""The HTTP server: admission of callers, routes, one server per data folder, its command and its metrics."""
