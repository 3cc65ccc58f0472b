"""Language models: wire formats, the catalog, prices, retries and recordings."""
