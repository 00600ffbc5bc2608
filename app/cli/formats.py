"""How data goes to stdout: a table for people, JSON and lines of JSON for programs, ids for pipes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.cli.exits import say
from app.domain.views import JsonText, page_json


class Format(StrEnum):
    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    IDS = "ids"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing in a list: its id, the whole of it as JSON text, and what a table shows of it."""

    id: str
    json: JsonText
    cells: Sequence[object]


def show_rows(output: Format, titles: Sequence[str], rows: Sequence[Row], next_cursor: str | None = None) -> None:
    """Prints a list. JSON is `{"data": [...], "next_cursor": ...}`, as over HTTP."""
    match output:
        case Format.TABLE:
            _print_lines(aligned([titles, *(row.cells for row in rows)]))
        case Format.JSON:
            print(page_json((row.json for row in rows), next_cursor))
        case Format.JSONL:
            _print_lines(row.json for row in rows)
        case Format.IDS:
            _print_lines(row.id for row in rows)
    if next_cursor is not None and output is not Format.JSON:
        say(f"more: --cursor {next_cursor}")


def show_one(output: Format, row: Row, titles: Sequence[str]) -> None:
    """Prints one thing: a line a field as a table, else its JSON or its id."""
    match output:
        case Format.TABLE:
            _print_lines(aligned(zip(titles, row.cells, strict=True)))
        case Format.JSON | Format.JSONL:
            print(row.json)
        case Format.IDS:
            print(row.id)


def show_document(text: JsonText) -> None:
    """Prints JSON text that is a whole answer."""
    print(text)


def aligned(table: Iterable[Sequence[object]]) -> list[str]:
    """The rows of a table as lines, columns padded to their widest cell."""
    texts = [[cell(value) for value in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in texts]


def cell(value: object) -> str:
    """One value as printable text on one line, so that no recorded text can drive the terminal."""
    if value is None or value == "":
        return "-"
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
