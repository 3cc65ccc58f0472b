"""Where a provider is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.adapters.models.catalog.catalog import address, provider
from greenroom.core.base.errors import WorldFault


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:11500", "http://127.0.0.1:11500/v1"),
        ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        (":11500", "http://127.0.0.1:11500/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("gpu-box/ollama/v1", "http://gpu-box:11434/ollama/v1"),
        ("[::]", "http://[::1]:11434/v1"),
        ("::", "http://[::1]:11434/v1"),
        ("[::1]:11500", "http://[::1]:11500/v1"),
        ("http://0.0.0.0:11434/", "http://127.0.0.1:11434/v1"),
        ("https://ollama.example.com", "https://ollama.example.com/v1"),
        ("https://ollama.example.com/api/v1/", "https://ollama.example.com/api/v1"),
        ("", "http://127.0.0.1:11434/v1"),
        ("  ", "http://127.0.0.1:11434/v1"),
    ],
)
def test_the_host_of_ollama_is_read_as_people_write_it(host: str, url: str) -> None:
    assert address(provider("ollama"), {"OLLAMA_HOST": host}) == url


def test_what_is_given_wins_over_the_variable_and_the_variable_over_the_usual() -> None:
    openai = provider("openai")
    assert address(openai, {}) == "https://api.openai.com/v1"
    assert address(openai, {"OPENAI_BASE_URL": "https://a.example/v1/"}) == "https://a.example/v1"
    assert address(openai, {"OPENAI_BASE_URL": "nonsense"}, "https://b.example:8443") == "https://b.example:8443/v1"
    assert address(provider("groq"), {"": "https://x.example"}) == "https://api.groq.com/openai/v1"
    assert address(provider("bedrock"), {}) == ""


def test_azure_is_asked_where_its_resource_is() -> None:
    azure = provider("azure")
    url = "https://me.openai.azure.com/openai/v1"
    assert address(azure, {"AZURE_OPENAI_ENDPOINT": "https://me.openai.azure.com/"}) == url
    with pytest.raises(WorldFault, match=r"'azure' has no address of its own. Set \$AZURE_OPENAI_ENDPOINT, or"):
        address(azure, {})


@pytest.mark.parametrize(
    "text", ["api.example.com", "ftp://x", "https://", "http://[::1", "https://x:port", "http://x:99999"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(
        WorldFault, match=r"^\$OPENAI_BASE_URL for 'openai' is no address. Write it like https://host/v1.$"
    ):
        address(provider("openai"), {"OPENAI_BASE_URL": text})


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(WorldFault, match="holds a password") as fault:
        address(provider("openai"), {}, "https://me:hunter2@x.example/v1")
    assert "hunter2" not in str(fault.value)


@given(st.text(), st.sampled_from(["ollama", "openai", "azure", "vllm"]))
def test_any_text_is_an_address_or_a_fault(text: str, name: str) -> None:
    try:
        url = address(provider(name), {}, text)
    except WorldFault:
        return
    assert url.startswith(("http://", "https://"))
