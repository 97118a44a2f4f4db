"""The HTTP server: who may call, the routes, one server for a data folder, its command and its figures."""
