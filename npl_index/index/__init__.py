"""Documents of any folders as rows of one SQLite file, which all processes of a data folder share."""
