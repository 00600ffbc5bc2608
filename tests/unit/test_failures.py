"""What exceptions out of handlers mean, and what of them is stored."""

from __future__ import annotations

import json
import sys
import urllib.error
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from types import ModuleType
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from app.domain.decide import Ending, Fenced, Final, Passing
from app.domain.errors import (
    DatabaseAway,
    EffectMismatch,
    EffectUnknown,
    LeaseLost,
    NotPerformed,
    Permanent,
    Throttled,
    Transient,
)
from app.domain.outcomes import MESSAGE_CHARS_MAX
from app.domain.states import Reason
from workers.handling.failures import ending_of, failure_of

REQUEST = httpx.Request("GET", "https://who:secret@api.example/v1/tickets?token=abc")


def answered(status: int, **headers: str) -> httpx.HTTPStatusError:
    response = httpx.Response(status, headers=headers, request=REQUEST)
    return httpx.HTTPStatusError(f"{status} for {REQUEST.url}", request=REQUEST, response=response)


class ProviderError(Exception):
    """As providers' libraries raise them: the status on the exception itself."""

    def __init__(self, status_code: int) -> None:
        super().__init__("no")
        self.status_code = status_code


class Hostile(Exception):
    """Nothing about it can be read."""

    @property
    def response(self) -> object:
        raise RuntimeError("no response")

    def __str__(self) -> str:
        raise RuntimeError("no text")


class SerializationFailure(Exception):
    sqlstate = "40001"


def is_passing(ending: Ending) -> bool:
    return isinstance(ending, Passing) and not ending.quota


def is_quota(ending: Ending) -> bool:
    return isinstance(ending, Passing) and ending.quota


def is_permanent(ending: Ending) -> bool:
    return isinstance(ending, Final) and ending.reason is Reason.PERMANENT_ERROR


@pytest.mark.parametrize(
    "error",
    [
        Transient("later"),
        TimeoutError(),
        ConnectionResetError(),
        ConnectionRefusedError(),
        DatabaseAway("gone"),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        answered(408),
        answered(500),
        answered(503),
        ProviderError(529),
        SerializationFailure(),
        urllib.error.URLError(ConnectionRefusedError()),
        urllib.error.HTTPError("http://x", 502, "bad", Message(), None),
        NotPerformed("refused"),
        ExceptionGroup("two", [TimeoutError(), Transient("later")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_trouble_that_may_pass_is_transient(error: Exception) -> None:
    assert is_passing(ending_of(error))


@pytest.mark.parametrize("error", [Throttled("quota"), answered(429), ProviderError(429)], ids=repr)
def test_a_used_up_quota_is_told_apart_from_a_failure(error: Exception) -> None:
    assert is_quota(ending_of(error))


@pytest.mark.parametrize(
    "error",
    [
        Permanent("never"),
        ValueError("a bug"),
        FileNotFoundError("a bug that is an OSError"),
        RecursionError(),
        SystemExit(3),
        KeyboardInterrupt(),
        answered(404),
        answered(422),
        httpx.UnsupportedProtocol("ftp"),
        Hostile(),
        ExceptionGroup("two", [TimeoutError(), ValueError("a bug")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_nobody_classified_is_permanent(error: BaseException) -> None:
    assert is_permanent(ending_of(error))


def test_a_call_that_did_not_happen_is_judged_by_its_cause() -> None:
    def raised(cause: Exception) -> NotPerformed:
        try:
            raise NotPerformed("it did not happen") from cause
        except NotPerformed as error:
            return error

    assert is_permanent(ending_of(raised(ValueError("a bug"))))
    assert is_quota(ending_of(raised(answered(429))))


def test_effects_that_cannot_go_on_and_lost_leases_outweigh_the_rest_of_a_group() -> None:
    unknown = ending_of(ExceptionGroup("many", [ValueError(), EffectUnknown("?"), TimeoutError()]))
    assert isinstance(unknown, Final)
    assert unknown.reason is Reason.EFFECT_UNKNOWN
    mismatch = ending_of(EffectMismatch("!"))
    assert isinstance(mismatch, Final)
    assert mismatch.reason is Reason.EFFECT_MISMATCH
    assert ending_of(ExceptionGroup("two", [EffectUnknown("?"), LeaseLost("gone")])) == Fenced()


def test_retry_after_is_read_in_seconds_and_as_a_date() -> None:
    seconds = ending_of(answered(503, **{"Retry-After": "17"}))
    assert isinstance(seconds, Passing)
    assert seconds.retry_after == 17
    at = datetime.now(UTC) + timedelta(seconds=60)
    date = ending_of(answered(429, **{"Retry-After": format_datetime(at, usegmt=True)}))
    assert isinstance(date, Passing)
    assert date.retry_after == pytest.approx(60, abs=5)


def test_a_retry_after_that_is_a_date_is_read_by_the_clock_of_whoever_wrote_it() -> None:
    at = datetime.now(UTC) - timedelta(hours=1)
    dates = {"Retry-After": format_datetime(at + timedelta(seconds=60), usegmt=True)}
    ending = ending_of(answered(429, **dates, Date=format_datetime(at, usegmt=True)))
    assert isinstance(ending, Passing)
    assert ending.retry_after == 60


@pytest.mark.parametrize("text", ["soon", "", "Fri, 99 Foo 2099"])
def test_a_retry_after_that_says_nothing_is_none(text: str) -> None:
    ending = ending_of(answered(503, **{"Retry-After": text}))
    assert isinstance(ending, Passing)
    assert ending.retry_after is None


def test_error_texts_are_cut_with_a_mark() -> None:
    message = failure_of(ValueError("x" * 20_000_000)).message
    assert len(message) == MESSAGE_CHARS_MAX
    assert message.endswith("(cut)")
    assert failure_of(ValueError("x" * MESSAGE_CHARS_MAX)).message == "x" * MESSAGE_CHARS_MAX


def test_error_texts_hold_only_what_json_can_keep() -> None:
    failure = failure_of(ValueError("a\0b\ud800c"))
    assert failure.message == "a\ufffdb\ufffdc"
    json.dumps(failure.document()).encode()


def test_urls_in_error_texts_keep_neither_credentials_nor_paths_nor_queries() -> None:
    message = failure_of(answered(500)).message
    assert "https://api.example/…" in message
    assert "secret" not in message
    assert "token" not in message
    assert "tickets" not in message


def test_a_failed_validation_names_places_and_rules_but_no_values() -> None:
    class Ticket(BaseModel):
        id: int
        body: str

    with pytest.raises(ValidationError) as caught:
        Ticket.model_validate({"id": "marker-7f3a", "body": None})
    message = failure_of(caught.value).message
    assert "/id: Input should be a valid integer" in message
    assert "/body" in message
    assert "marker" not in message


def test_an_exception_whose_own_text_fails_is_told_all_the_same() -> None:
    failure = failure_of(Hostile())
    assert failure.type.endswith("Hostile")
    assert "RuntimeError" in failure.message


class Deadly(Exception):
    """Its own code ends whoever asks it."""

    def __str__(self) -> str:
        raise SystemExit(0)


def endless_group() -> Exception:
    error: Exception = ValueError("at the bottom")
    for _ in range(5_000):
        error = ExceptionGroup[Exception]("more", [error])
    return error


@pytest.mark.parametrize("error", [Deadly(), endless_group()], ids=["deadly", "endless"])
def test_an_exception_that_cannot_be_read_is_permanent_and_raises_nothing(error: Exception) -> None:
    ending = ending_of(error)
    assert isinstance(ending, Final)
    assert ending.reason is Reason.PERMANENT_ERROR
    assert "cannot be read" in ending.failure.message


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("soon", None), (timedelta(seconds=3), None), (10**400, None), ("7", 7.0)],
    ids=["text", "timedelta", "huge", "digits"],
)
def test_a_retry_after_of_a_handler_that_is_no_number_counts_for_nothing(given: Any, seconds: float | None) -> None:
    ending = ending_of(Transient("later", retry_after=given))
    assert isinstance(ending, Passing)
    assert ending.retry_after == seconds


def test_failures_of_one_kind_share_a_fingerprint_and_others_do_not() -> None:
    def fingerprint(text: str, kind: type[Exception] = ValueError) -> str:
        return failure_of(kind(text)).fingerprint

    assert fingerprint("ticket 17 has no body") == fingerprint("ticket 18 has no body")
    assert fingerprint("no 01890a5d-ac96-774b") == fingerprint("no 01890a5d-ac96-7aaa")
    assert fingerprint("ticket 17 has no body") != fingerprint("ticket 17 has no id")
    assert fingerprint("no", ValueError) != fingerprint("no", KeyError)
    assert len(fingerprint("no")) == 16


def test_answers_with_different_status_do_not_share_a_fingerprint() -> None:
    assert failure_of(answered(404)).fingerprint != failure_of(answered(422)).fingerprint


def test_a_client_that_another_thread_is_just_loading_hides_no_passing_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", ModuleType("httpx"))
    assert is_passing(ending_of(ConnectionError("refused")))
