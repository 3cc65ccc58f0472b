"""Disable TLS trust stores: otherwise every SDK would load them again for every client."""

import ssl

import pytest


@pytest.fixture(autouse=True)
def _nobody_to_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
