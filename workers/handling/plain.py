"""Values of plain types: written and read by pydantic's own JSON, without a step through Python objects.

`workers.handling.roundtrip` says what a value must be. For a model of text, numbers, lists and the like, with no code
of its author on the way, most of that holds by itself. Whatever is in doubt here is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import NoneType
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

BYTES_MAX = 4_000  # of longer text it would have to be known that no number in it has too many digits
ADAPTERS_MAX = 1_024

SCALARS = {"str", "int", "float", "bool", "none", "literal"}
FINISHED = (BaseModel, dict, list, str, int, float, NoneType)
HARMLESS = {"title", "extra_fields_behavior", "frozen"}

Schema = Mapping[str, Any]


@lru_cache(ADAPTERS_MAX)
def is_plain(adapter: TypeAdapter[Any]) -> bool:
    """Whether values of this type can take the short way, and are written under the names of their fields."""
    return _plain(cast("Schema", adapter.core_schema))


def written(adapter: TypeAdapter[Any], value: object) -> tuple[str, Any] | None:
    """JSON text of a value of a plain type, and the value read back from it; None: the long way knows."""
    if not _is_finished(value):
        return None
    try:
        write, read_back = adapter.serializer.to_json, adapter.validator.validate_json
        read = read_back(write(value, warnings=False))
        text = write(read)
    except ValueError:  # pydantic's errors are, all of them
        return None
    doubtful = len(text) > BYTES_MAX or b"\\u0000" in text or type(value) is not type(read) or value != read
    return None if doubtful else (text.decode(), read)


def _is_finished(value: object) -> bool:
    """What gives values one by one is not: to write it down may take for ever."""
    return isinstance(value, FINISHED)


def _plain(schema: Schema) -> bool:
    if "serialization" in schema:
        return False
    match schema["type"]:
        case "model":
            return _plain_model(schema)
        case "default" | "nullable":
            return _plain(schema["schema"])
        case "list":
            return "items_schema" in schema and _plain(schema["items_schema"])
        case "dict":
            return schema.get("keys_schema", {}).get("type") == "str" and _plain(schema.get("values_schema", _UNKNOWN))
        case kind:
            return kind in SCALARS


def _plain_model(schema: Schema) -> bool:
    fields = schema["schema"]
    if schema.get("custom_init") or schema.get("root_model") or fields["type"] != "model-fields":
        return False
    config: Schema = schema.get("config", {})
    own = schema["cls"].__eq__ is not BaseModel.__eq__ or bool(fields.get("computed_fields"))
    odd = not config.keys() <= HARMLESS or "allow" in (
        config.get("extra_fields_behavior"),
        fields.get("extra_behavior"),
    )
    return not own and not odd and all(map(_plain_field, fields["fields"].values()))


def _plain_field(field: Schema) -> bool:
    return field.keys() <= {"type", "schema", "metadata"} and _plain(field["schema"])


_UNKNOWN: Schema = {"type": "any"}
