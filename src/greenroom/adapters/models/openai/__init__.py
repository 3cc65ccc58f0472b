"""OpenAI's chat completions over HTTP. This wire format is written by hand, because most providers use it."""
