"""A turn of a conversation: its transcript, the meaning of a reply, and when the work is over."""
