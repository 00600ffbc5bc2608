"""The pages say what is true: the tests they name exist, and their tables are those of the code."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import chain

import pytest
import typer
from pydantic import SecretStr

from app.cli.exits import ExitCode
from app.settings import Settings
from tests.architecture import tree
from workers.main import cli

README = (tree.ROOT / "README.md").read_text(encoding="utf-8")
ARCHITECTURE = (tree.ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
HANDLERS = (tree.ROOT / "docs/handlers.md").read_text(encoding="utf-8")
FAILURES = (tree.ROOT / "docs/failures.md").read_text(encoding="utf-8")
FAILPOINTS = (tree.ROOT / "docs/failpoints.md").read_text(encoding="utf-8")
PAGES = {
    "README.md": README,
    "ARCHITECTURE.md": ARCHITECTURE,
    "docs/handlers.md": HANDLERS,
    "docs/failures.md": FAILURES,
    "docs/failpoints.md": FAILPOINTS,
}

# `outlast job list ...` in text, `$ outlast job list ...` in examples; at most two words name a command.
COMMAND = re.compile(
    r"(?:`|^\$ |\| )outlast ((?:api|relay|dev|worker|migrate|doctor|audit)\b|[a-z]+ [a-z]+)", re.MULTILINE
)
TEST_NAME = re.compile(r"tests/[\w/]+\.py(?:::\w+)?")


@pytest.mark.parametrize("page", PAGES)
def test_every_test_a_page_names_exists(page: str) -> None:
    named = set(TEST_NAME.findall(PAGES[page]))
    known = tree.tests() | {tree.name(path) for path in tree.python("tests")}
    assert named - known == set()


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("README.md", "Promises"),
        ("ARCHITECTURE.md", "What can die"),
        ("docs/handlers.md", "When handlers misbehave"),
        ("docs/handlers.md", "Deploys"),
    ],
)
def test_every_promise_names_the_test_that_holds_it(page: str, heading: str) -> None:
    rows = _table(_section(PAGES[page], heading))
    assert rows
    assert [row[0] for row in rows if not TEST_NAME.search(row[-1])] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_to_one(page: str) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", PAGES[page]) + re.findall(r'src="([^"]+)"', PAGES[page])
    folder = (tree.ROOT / page).parent
    assert [target for target in targets if not (folder / target).exists()] == []


def test_the_settings_table_is_the_settings() -> None:
    shown = {row[0].strip("`"): row[1].strip("`") for row in _table(_section(README, "Settings"))}
    assert shown == {f"OUTLAST_{name.upper()}": _default(name) for name in Settings.model_fields}


def test_the_exit_codes_table_is_the_exit_codes() -> None:
    assert [int(row[0]) for row in _table(_section(README, "Exit codes"))] == [code.value for code in ExitCode]


def test_every_command_on_the_pages_is_one_that_exists() -> None:
    commands = set(_commands(cli))
    shown = {line for text in PAGES.values() for line in COMMAND.findall(text)}
    strangers = {line for line in shown if not any(f"{line} ".startswith(f"{known} ") for known in commands)}
    assert strangers == set()


def test_every_dependency_has_a_line_that_says_why() -> None:
    project = tomllib.loads((tree.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    names = {re.split(r"[\[><=;]", line)[0].strip() for line in wanted}
    explained = {
        word for row in _table(_section(ARCHITECTURE, "Dependencies")) for word in re.findall(r"`([\w-]+)`", row[0])
    }
    assert explained == names


def test_ci_runs_the_test_command_of_the_readme() -> None:
    assert "\nmake test" in _section(README, "Run the tests")
    assert "make test" in (tree.ROOT / ".ci" / "run").read_text(encoding="utf-8")


def _default(name: str) -> str:
    default: object = Settings.model_fields[name].default
    match default:
        case None | "":
            return "none"
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
        case SecretStr():
            return default.get_secret_value()
        case _:
            return str(default)


def _section(page: str, heading: str) -> str:
    found = re.search(rf"^##+ {heading}.*?\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found is not None, f"no section {heading}"
    return found[1]


def _table(section: str) -> list[tuple[str, ...]]:
    """The body rows of the section's tables, cells stripped."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    body = [line for at, line in enumerate(lines) if not set(line) <= set("|-: ") and not _is_header(lines, at)]
    return [tuple(cell.strip() for cell in line.strip().strip("|").split(" | ")) for line in body]


def _is_header(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and set(lines[at + 1]) <= set("|-: ")


def _commands(app: typer.Typer, prefix: str = "") -> Iterator[str]:
    for command in app.registered_commands:
        spoken = command.name or (command.callback.__name__.replace("_", "-") if command.callback else "")
        yield f"{prefix}{spoken}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from _commands(group.typer_instance, f"{prefix}{group.name or group.typer_instance.info.name} ")
