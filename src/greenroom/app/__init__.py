"""The application layer: it wires the parts together for the library and the command line."""
