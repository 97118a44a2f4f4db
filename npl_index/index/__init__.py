"""Documents of any folders as rows of one SQLite file, shared by all processes of a data folder."""
