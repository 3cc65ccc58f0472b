"""The source designs in their own words: classes with their names and fields, as views on the one system."""
