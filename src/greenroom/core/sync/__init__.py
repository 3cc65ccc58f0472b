"""The only place where state changes: the writer, the bus that publishes commits, and the replay of a log."""
