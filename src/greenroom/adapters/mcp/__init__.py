"""MCP servers: untrusted programs whose output is only data. The SDK is loaded on first use."""
