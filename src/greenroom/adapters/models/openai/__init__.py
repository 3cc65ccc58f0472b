"""OpenAI's chat completions over HTTP: the one wire format written by hand, because it is nearly everybody's."""
