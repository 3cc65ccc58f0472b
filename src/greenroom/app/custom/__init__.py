"""Tools and callbacks of one's own: files in folders, and what packages bring. Strangers' code: one hurts no other."""
