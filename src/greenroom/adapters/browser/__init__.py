"""A local Chromium: started in its own folder, driven through playwright, and limited to an egress proxy."""
