"""What is true: one file per noun (record, events, transitions), the world they make, and the fold."""
