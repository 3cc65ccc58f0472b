"""Tools that remember: memories are saved, found again and cleared by type and by tag."""
