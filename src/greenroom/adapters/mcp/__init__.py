"""MCP servers as the house uses them: strangers' programs whose every word is data. The SDK is loaded on first use."""
