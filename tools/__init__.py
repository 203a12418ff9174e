"""Programs that write the documentation's generated pages and pictures: `make docs`, `make docs-site`."""
