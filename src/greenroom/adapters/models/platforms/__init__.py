"""The platform registry: a conversation with any provider, and platforms of one's own."""
