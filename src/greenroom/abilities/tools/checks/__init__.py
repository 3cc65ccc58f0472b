"""The tool that runs the project's checks, and what it says of them."""
