"""The HTTP face: who may call, what is where, one server for a data folder, its command and its figures."""
