"""What all stores share: the database, errors, checks of input, pages."""
