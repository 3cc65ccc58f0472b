"""The catalog of providers and model families, and which of them are available."""
