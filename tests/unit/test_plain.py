"""The short way of plain values gives what the long way gives, or leaves them to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel, TypeAdapter, computed_field, field_serializer

from app.domain.errors import OutlastError
from workers.handling import roundtrip
from workers.handling.plain import is_plain, written
from workers.handling.roundtrip import encode, published

LIMIT = 5_000


class Part(BaseModel):
    share: float | None = None
    names: list[str] = Field(default_factory=list[str])


class Whole(BaseModel):
    n: int
    text: str = ""
    sure: bool = False
    kind: Literal["a", "b"] = "a"
    parts: list[Part] = Field(default_factory=list[Part])
    counts: dict[str, int] = Field(default_factory=dict[str, int])


class Larger(Whole):
    more: str = "left out"


class Aliased(BaseModel):
    n: int = Field(alias="N", default=0)


class Excluding(BaseModel):
    n: int = Field(exclude=True, default=0)


class Serializing(BaseModel):
    n: int = 0

    @field_serializer("n")
    def _doubled(self, n: int) -> int:
        return 2 * n


class Computing(BaseModel):
    n: int = 0

    @computed_field
    @property
    def twice(self) -> int:
        return 2 * self.n


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class Infinite(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    n: float = 0


class Equal(BaseModel):
    n: int = 0

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class Hiding(BaseModel):
    n: int = 0
    _own: int = PrivateAttr(default=0)


class Tree(BaseModel):
    below: list[Tree] = Field(default_factory=list["Tree"])


class Root(RootModel[int]):
    pass


PLAIN: list[Any] = [Whole, Part, Hiding, int, float, str, None, list[Whole], dict[str, float | None], bool | None]
NOT_PLAIN: list[Any] = [
    *(Aliased, Excluding, Serializing, Computing, Open, Infinite, Equal, Tree, Root),
    *(Any, set[int], list, dict[int, int], bytes, int | str),
]

VALUES: list[Any] = [
    Whole(n=1, text="é\u2028\x7f", parts=[Part(share=0.1, names=["x"])], counts={"b": 1, "a": 2}),
    Whole(n=10**4_299),
    Whole(n=10**4_300),
    Whole(n=1, text="\0"),
    Whole(n=1, text="\\u0000"),
    Whole(n=1, text="\ud800"),
    Whole(n=1, text="x" * 4_100),
    Whole(n=1, text="x" * 6_000),
    Whole.model_construct(n="1"),
    Whole.model_construct(n=True),
    Whole.model_construct(n=1, parts=({"share": 1},)),
    Whole.model_construct(),
    Larger(n=1),
    Part(share=math.nan),
    Part(share=math.inf),
    Part(share=-0.0),
    Part(share=1),
    {"n": 1},
    [Whole(n=1)],
    [Larger(n=1)],
    (Whole(n=1),),
    {"a": 1.5, "b": None, "c": 2},
    {"a": math.nan},
    {1: 2.0},
    True,
    1,
    1.0,
    "1",
    None,
    b"x",
    object(),
]


def outcome(way: Callable[[], object]) -> object:
    try:
        return way()
    except (ValueError, OutlastError) as error:
        return type(error)


def never(_adapter: object) -> bool:
    return False


def both(way: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    short = outcome(way)
    with monkeypatch.context() as patch:
        patch.setattr(roundtrip, "is_plain", never)
        return short, outcome(way)


@pytest.mark.parametrize("annotation", PLAIN, ids=str)
def test_types_without_code_of_their_author_are_plain(annotation: Any) -> None:
    assert is_plain(TypeAdapter(annotation))


@pytest.mark.parametrize("annotation", NOT_PLAIN, ids=str)
def test_types_that_are_written_in_a_way_of_their_own_are_not(annotation: Any) -> None:
    assert not is_plain(TypeAdapter(annotation))


@pytest.mark.parametrize("annotation", [*PLAIN, *NOT_PLAIN], ids=str)
def test_no_value_is_written_otherwise_than_the_long_way_writes_it(
    annotation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for value in VALUES:
        short, long = both(lambda value=value: published(adapter, value, bytes_max=LIMIT), monkeypatch)
        assert short == long
        short, long = both(lambda value=value: encode(adapter, value, bytes_max=LIMIT)[1], monkeypatch)
        assert short == long


NUMBERS = st.integers() | st.floats() | st.booleans()


@given(st.builds(Whole, n=st.integers(), text=st.text(), counts=st.dictionaries(st.text(), st.integers())))
def test_a_plain_model_is_written_as_the_long_way_writes_it(value: Whole) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        short, long = both(lambda: published(TypeAdapter(Whole), value, bytes_max=LIMIT), monkeypatch)
    assert short == long


@given(st.dictionaries(st.text(), NUMBERS | st.none()))
def test_plain_numbers_are_written_as_the_long_way_writes_them(value: dict[str, float | None]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        adapter = TypeAdapter(dict[str, float | None])
        short, long = both(lambda: published(adapter, value, bytes_max=LIMIT), monkeypatch)
    assert short == long


def test_most_values_take_the_short_way() -> None:
    assert written(TypeAdapter(Whole), VALUES[0]) is not None
