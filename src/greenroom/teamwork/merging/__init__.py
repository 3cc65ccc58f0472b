"""Merge two versions of one file: by lines, then by structure. What cannot be known stays a conflict."""
