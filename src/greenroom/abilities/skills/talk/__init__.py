"""A turn of a conversation: what was said, what a reply means, and when it is over."""
