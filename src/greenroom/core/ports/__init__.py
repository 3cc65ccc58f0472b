"""Protocols for everything outside the core, and the codec at its border. No third-party type crosses them."""
