"""One module a page or group of pages."""
