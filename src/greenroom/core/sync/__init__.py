"""The one place where anything happens: the writer, the bus that tells of it, and reading a log back."""
