"""Reading requests, and which requests are the same request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import JsonRefused, Refused
from app.domain.jsontext import JsonValue, dump, parse
from app.domain.request import (
    JobRequest,
    StoredRequest,
    canonical,
    differences,
    key_digest,
    read_instant,
    read_key,
    read_request,
    refuse_beyond_horizon,
    request_digest,
)

CREATED = datetime(2031, 1, 1, 12, tzinfo=UTC)
STORED = StoredRequest(
    kind="t",
    input={"a": "é", "b": 1},
    queue="default",
    priority=5,
    run_at=None,
    deadline=None,
    timeout_seconds=300.0,
    max_retries=2,
    metadata=None,
    created_at=CREATED,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("aé~/\n"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab/~"), inner),
    max_leaves=12,
)


def pointers(body: JsonValue) -> list[str]:
    with pytest.raises(Refused) as caught:
        read_request(body)
    assert (caught.value.status, caught.value.code) == (422, "invalid-request")
    return [error["pointer"] for error in caught.value.errors]


def test_a_whole_request_is_read() -> None:
    request = read_request(
        parse(
            '{"kind": "a.b-c_d", "input": null, "queue": "q", "priority": 0, "delay_seconds": 1.5, "max_retries": 5.0,'
            '"deadline": "2031-01-01T12:00:00+05:30", "timeout_seconds": 3, "metadata": {"k": [1]}}'
        )
    )
    assert request == JobRequest(
        kind="a.b-c_d",
        input=None,
        queue="q",
        priority=0,
        delay_seconds=1.5,
        deadline=datetime(2031, 1, 1, 6, 30, tzinfo=UTC),
        timeout_seconds=3.0,
        max_retries=5,
        metadata={"k": [1]},
    )


BAD: dict[str, tuple[object, ...]] = {
    "priority": (-1, 10, 2**31, 2**63, 1e20, 1.5, True, "1", [], {}),
    "max_retries": (-1, 6, 2**63, "2", False),
    "timeout_seconds": (0, -1, 2**63, 10**400, "1", True),
    "delay_seconds": (-1, -0.5, 2**63, 1e13, "1", True),
    "kind": ("", "A", "-a", "a" * 101, "a b", "a\n", 1, None, "é"),
    "queue": ("", "Q", "a/b", 1, []),
    "metadata": ("text", [], 1, {"k": "x" * 20_000}),
    "run_at": (
        "2031-01-01T12:00:00",
        "2031-02-30T12:00:00Z",
        "2031-01-01",
        "2031-01-01T25:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-10:00",
        "2031-01-01T12:00:00+99:99",
        "٢٠٣١-01-01T12:00:00Z",
        "",
        -1,
        1_900_000_000,
    ),
}


@pytest.mark.parametrize(("member", "value"), [(member, value) for member, bad in BAD.items() for value in bad])
def test_a_member_out_of_its_range_is_named(member: str, value: Any) -> None:
    assert pointers({"kind": "t", "input": {}, member: value}) == [f"/{member}"]


def test_missing_unknown_and_contradicting_members_are_named() -> None:
    assert pointers({}) == ["/kind", "/input"]
    assert pointers({"kind": "t", "input": 1, "payload": 1, "a/b": 2}) == ["/payload", "/a~1b"]
    at = "2031-01-01T12:00:00Z"
    assert pointers({"kind": "t", "input": 1, "run_at": at, "delay_seconds": 1}) == ["/delay_seconds"]
    assert pointers({"kind": "t", "input": 1, "run_at": at, "deadline": at}) == ["/deadline"]
    assert pointers([]) == [""]


def test_an_input_nested_one_hundred_deep_is_taken_and_one_deeper_is_not() -> None:
    deep: JsonValue = parse("[" * 100 + "]" * 100)
    assert read_request({"kind": "t", "input": deep}).input == deep
    with pytest.raises(JsonRefused):
        read_request({"kind": "t", "input": [deep]})


def test_equal_instants_are_equal_whatever_their_zone() -> None:
    texts = ("2031-01-01T12:00:00Z", "2031-01-01t17:30:00.000+05:30", "2031-01-01T04:00:00-08:00")
    assert len({read_instant(text) for text in texts}) == 1


def test_times_beyond_the_horizon_are_named() -> None:
    def late(**times: Any) -> list[str]:
        with pytest.raises(Refused) as caught:
            refuse_beyond_horizon(JobRequest("t", None, **times), CREATED, 366)
        return [error["pointer"] for error in caught.value.errors]

    assert late(run_at=CREATED + timedelta(days=367)) == ["/run_at"]
    assert late(delay_seconds=367 * 86_400.0, deadline=CREATED + timedelta(days=400)) == ["/deadline", "/delay_seconds"]
    refuse_beyond_horizon(JobRequest("t", None, delay_seconds=366 * 86_400.0), CREATED, 366)


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "é", "\0", "a\n"])
def test_a_key_that_is_not_visible_ascii_is_refused(key: str) -> None:
    with pytest.raises(Refused) as caught:
        read_key(key)
    assert caught.value.status == 422


def test_keys_belong_to_their_tenant() -> None:
    assert read_key("x" * 255)
    assert key_digest("a", "k") == key_digest("a", "k") != key_digest("b", "k")


@given(values)
def test_the_canonical_text_does_not_depend_on_how_the_value_was_written(value: JsonValue) -> None:
    text = canonical(value)
    assert canonical(parse(text)) == text
    assert canonical(parse(dump(value))) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"b":1,"a":"é"}', '{ "a" : "\\u00e9", "b" : 1 }'),
        ("1", "1.0"),
        ("1", "1e0"),
        ("0", "-0.0"),
        ("100000000000000000000", "1e20"),
        ('{"a":1,"a":2}', '{"a":2}'),
    ],
)
def test_equal_json_values_make_equal_digests(one: str, other: str) -> None:
    first, second = JobRequest("t", parse(one)), JobRequest("t", parse(other))
    assert request_digest(first) == request_digest(second)
    assert differences(second, replace(STORED, input=parse(one))) == []


@pytest.mark.parametrize(
    ("sent", "place"),
    [
        ('{"a":"é","b":"1"}', "/input/b"),
        ('{"a":"é","b":true}', "/input/b"),
        ('{"a":"e\\u0301","b":1}', "/input/a"),
        ('{"a":"é","b":null}', "/input/b"),
        ('{"a":"é"}', "/input/b"),
        ('{"a":"é","b":1,"c/d":0}', "/input/c~1d"),
        ("[]", "/input"),
    ],
)
def test_different_input_is_named_by_its_pointer(sent: str, place: str) -> None:
    request = JobRequest("t", parse(sent))
    assert request_digest(request) != request_digest(JobRequest("t", STORED.input))
    assert differences(request, STORED) == [place]


def test_neighbouring_integers_beyond_a_double_differ_and_so_does_the_order_of_a_list() -> None:
    assert differences(JobRequest("t", 2**53), replace(STORED, input=2**53 + 1)) == ["/input"]
    assert differences(JobRequest("t", [1, 2]), replace(STORED, input=[2, 1])) == ["/input/0", "/input/1"]


def test_what_is_left_out_equals_what_the_job_got_and_the_rest_is_named() -> None:
    explicit = JobRequest("t", STORED.input, queue="default", priority=5, timeout_seconds=300, max_retries=2)
    assert differences(explicit, STORED) == []
    assert differences(JobRequest("t", STORED.input), replace(STORED, priority=1, metadata={"a": 1})) == []
    other = JobRequest("u", STORED.input, "q", 4, None, None, CREATED, 1, 0, {"a": 1})
    assert differences(other, STORED) == [
        "/metadata",
        "/kind",
        "/queue",
        "/priority",
        "/deadline",
        "/timeout_seconds",
        "/max_retries",
    ]


def test_relative_times_are_compared_with_what_they_became() -> None:
    later = replace(STORED, run_at=CREATED + timedelta(seconds=90))
    assert differences(JobRequest("t", STORED.input, delay_seconds=90), later) == []
    assert differences(JobRequest("t", STORED.input, delay_seconds=0), STORED) == []
    assert differences(JobRequest("t", STORED.input, run_at=CREATED + timedelta(seconds=90)), later) == []
    assert differences(JobRequest("t", STORED.input, delay_seconds=91), later) == ["/delay_seconds"]
    assert differences(JobRequest("t", STORED.input, run_at=CREATED), later) == ["/run_at"]
    assert request_digest(JobRequest("t", 1, delay_seconds=90)) == request_digest(
        JobRequest("t", 1, delay_seconds=90.0)
    )
