"""The application layer: it wires the parts together for the library, the CLI and the HTTP API."""
