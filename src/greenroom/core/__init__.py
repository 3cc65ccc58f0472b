"""What is true, what may happen, and the one place where it happens."""
