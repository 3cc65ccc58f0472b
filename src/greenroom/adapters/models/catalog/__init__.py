"""What is known of providers and model families, and which of them are at hand."""
