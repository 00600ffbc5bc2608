"""Who is let in, and where the API may listen."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from httpx import ASGITransport, AsyncClient
from httpx import Response as Answer
from pydantic import SecretStr
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.api.auth import Gate, refuse_unsafe_binding
from app.api.problems import LastResort
from app.api.serve import NOT_ALLOWED, serve
from app.domain.errors import Refused
from app.settings import Settings

TOKEN = "a-secret-token"


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/broken":
        raise RuntimeError("the secret of the caller")
    await Response(status_code=204)(scope, receive, send)


async def ask(token: str | None, headers: Mapping[str, str], path: str = "/v1/jobs") -> Answer:
    app = LastResort(Gate(inner, token=token))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1:8080") as client:
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        return await client.post(path, headers=raw)


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xff", TOKEN])
async def test_without_the_token_nothing_but_the_health_checks_answers(given: str) -> None:
    answer = await ask(TOKEN, {"Authorization": given})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert TOKEN not in answer.text
    for path in ("/healthz", "/readyz"):
        assert (await ask(TOKEN, {"Authorization": given}, path)).status_code == 204


async def test_the_token_lets_in_and_without_one_set_everybody_is_let_in() -> None:
    assert (await ask(TOKEN, {"Authorization": f"Bearer {TOKEN}"})).status_code == 204
    assert (await ask(TOKEN, {"Authorization": f"bearer {TOKEN}"})).status_code == 204
    assert (await ask(None, {})).status_code == 204


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://[broken"),
        ("Origin", "\xff"),
    ],
)
async def test_a_browser_acting_for_another_site_is_refused(name: str, value: str) -> None:
    answer = await ask(None, {name: value})
    assert (answer.status_code, answer.json()["code"]) == (403, "cross-site-request")


async def test_a_page_of_our_own_is_let_in_behind_a_proxy_too() -> None:
    assert (await ask(None, {"Origin": "http://127.0.0.1:8080"})).status_code == 204
    assert (await ask(None, {"Sec-Fetch-Site": "same-origin", "Origin": "https://jobs.example"})).status_code == 204


async def test_what_nobody_answers_is_a_problem_without_the_text_of_the_error() -> None:
    answer = await ask(None, {"X-Request-Id": "r-1"}, "/broken")
    assert (answer.status_code, answer.json()["code"], answer.json()["request_id"]) == (500, "internal-error", "r-1")
    assert "secret" not in answer.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.org"])
def test_an_address_others_reach_needs_a_token_or_a_decision(host: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refused):
        refuse_unsafe_binding(Settings(), host)
    assert serve(Settings(), host, 0) == NOT_ALLOWED
    assert "OUTLAST_API_TOKEN" in capfd.readouterr().err
    refuse_unsafe_binding(Settings(api_token=SecretStr(TOKEN)), host)
    refuse_unsafe_binding(Settings(allow_anonymous=True), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machines_own_addresses_need_neither(host: str) -> None:
    refuse_unsafe_binding(Settings(), host)
