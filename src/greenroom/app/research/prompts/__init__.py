"""The texts of the research desk."""
