"""Tools for the web: a search, and pages as text. What they bring is a stranger's word, and is called that."""
