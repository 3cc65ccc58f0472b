"""Small programs for developers. They are not shipped."""
