"""Refusals and errors by HTTP status, in the wording of vendors."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

from tests.fake_openai.answers import Asked
from tests.fake_openai.faults.shape import Fault, error
from tests.fake_openai.wire import HTML, Headers, Wire, told, whole

INVALID: Final = "invalid_request_error"
BUSY: Final = error("Rate limit reached for requests", "requests", "rate_limit_exceeded")


def refusal(name: str, status: int, body: object, about: str, headers: Headers = ()) -> Fault:
    """Build an error with a constant JSON body."""
    return Fault(name=name, about=about, make=lambda _, __: told(body, status=status, headers=headers))


def page(name: str, status: int, title: str, server: str, about: str) -> Fault:
    """Build an HTML error page of a proxy."""
    body = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        f"<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
    ).encode()
    return Fault(name=name, about=about, make=lambda _, __: whole(body, status=status, kind=HTML))


def rate_seconds(_: Asked, fault: Fault) -> Wire:
    """429 with Retry-After in seconds."""
    return told(BUSY, status=429, headers=(("Retry-After", f"{fault.wait:g}"),))


def rate_date(_: Asked, fault: Fault) -> Wire:
    """429 with Retry-After as a date."""
    # A date has whole seconds: rounded up, or it would be over before it is read.
    then = datetime.now(UTC) + timedelta(seconds=math.ceil(fault.wait))
    return told(BUSY, status=429, headers=(("Retry-After", format_datetime(then, usegmt=True)),))


def rate_ms(_: Asked, fault: Fault) -> Wire:
    """429 with retry-after-ms."""
    return told(BUSY, status=429, headers=(("retry-after-ms", f"{fault.wait * 1000:g}"),))


def rate_words(_: Asked, fault: Fault) -> Wire:
    """429 with the waiting time only in its message."""
    words = (
        "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, "
        f"Requested 2000. Please try again in {fault.wait:g}s. Visit https://platform.openai.com/account/rate-limits."
    )
    return told(error(words, "tokens", "rate_limit_exceeded"), status=429)


def unavailable(_: Asked, fault: Fault) -> Wire:
    """503 with Retry-After in seconds."""
    body = error("The server is currently overloaded with other requests.")
    return told(body, status=503, headers=(("Retry-After", f"{fault.wait:g}"),))


TOO_LONG: Final = (
    refusal(
        "too_long_openai",
        400,
        error(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 140211 tokens. "
            "Please reduce the length of the messages.",
            INVALID,
            "context_length_exceeded",
            "messages",
        ),
        "The conversation does not fit, as OpenAI says it.",
    ),
    refusal(
        "too_long_vllm",
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 "
            "in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "The conversation does not fit, as vLLM says it: no `error` around it.",
    ),
    refusal(
        "too_long_llama_cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the context size or enable "
                "context shift",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5000,
                "n_ctx": 4096,
            }
        },
        "The conversation does not fit, as llama.cpp says it.",
    ),
    refusal(
        "too_long_deepseek",
        400,
        error(
            "This model's maximum context length is 65536 tokens. However, you requested 70096 tokens (66000 in the "
            "messages, 4096 in the completion). Please reduce the length of the messages or completion.",
            INVALID,
            INVALID,
        ),
        "The conversation does not fit, as DeepSeek says it: no code of its own.",
    ),
)

REFUSED: Final = (
    refusal("bad_request", 400, error("Unrecognized request argument supplied: foo", INVALID), "400: not understood."),
    refusal(
        "content_filter",
        400,
        error(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            INVALID,
            "content_filter",
            "prompt",
        ),
        "400: will not be answered, as Azure says it.",
    ),
    refusal(
        "wrong_key",
        401,
        error("Incorrect API key provided: sk-x***. You can find your API key online.", INVALID, "invalid_api_key"),
        "401: a wrong key.",
    ),
    refusal(
        "no_credit", 402, error("Insufficient Balance", "unknown_error", INVALID), "402: nothing left to pay with."
    ),
    refusal(
        "forbidden",
        403,
        error(
            "Country, region, or territory not supported", "request_forbidden", "unsupported_country_region_territory"
        ),
        "403: this key may not.",
    ),
    refusal(
        "no_model",
        404,
        error("The model `gpt-9` does not exist or you do not have access to it.", INVALID, "model_not_found"),
        "404: no such model.",
    ),
    refusal(
        "no_model_ollama",
        404,
        error('model "gpt-9" not found, try pulling it first', "api_error"),
        "404: no such model, as Ollama says it.",
    ),
    page("no_path", 404, "404 Not Found", "nginx/1.25.3", "404: a wrong path, in nginx's HTML."),
    refusal("no_method", 405, {"detail": "Method Not Allowed"}, "405: this address takes no POST."),
    refusal("request_timeout", 408, error("Request timed out.", "timeout"), "408: the server stopped waiting."),
    refusal("conflict", 409, error("The resource is locked by another request.", "conflict"), "409: try again."),
    page("too_large", 413, "413 Request Entity Too Large", "nginx/1.25.3", "413: a proxy's limit for bodies."),
    refusal("no_media_type", 415, error("Unsupported content type: 'text/plain'.", INVALID), "415: not JSON."),
    refusal(
        "unprocessable",
        422,
        {"detail": [{"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "Field required", "input": {}}]},
        "422: FastAPI's list of details.",
    ),
    refusal(
        "no_quota",
        429,
        error(
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            "insufficient_quota",
        ),
        "429 that no waiting mends: nothing left to pay with.",
    ),
)

RATES: Final = (
    Fault(name="rate_seconds", about="429 with Retry-After in seconds.", make=rate_seconds, wait=1.0),
    Fault(name="rate_date", about="429 with Retry-After as a date.", make=rate_date, wait=1.0),
    Fault(name="rate_ms", about="429 with retry-after-ms.", make=rate_ms, wait=0.25),
    Fault(name="rate_words", about="429 that says when in its message only.", make=rate_words, wait=1.5),
    refusal("rate_bare", 429, BUSY, "429 that does not say when."),
)

BROKEN: Final = (
    refusal(
        "server_error", 500, error("The server had an error while processing your request."), "500: its own fault."
    ),
    page("bad_gateway", 502, "502 Bad Gateway", "nginx/1.25.3", "502: a proxy's HTML."),
    Fault(name="unavailable", about="503 with Retry-After in seconds.", make=unavailable, wait=1.0),
    page("gateway_timeout", 504, "504 Gateway Time-out", "nginx/1.25.3", "504: a proxy's HTML."),
    page(
        "unknown_error", 520, "520: Web server is returning an unknown error", "cloudflare", "520: Cloudflare's HTML."
    ),
    refusal(
        "overloaded",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "529: overloaded, as Anthropic says it.",
    ),
)

STATUSES: Final = (*TOO_LONG, *REFUSED, *RATES, *BROKEN)
