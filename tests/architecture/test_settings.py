"""A setting that nobody reads is a promise nobody keeps."""

from __future__ import annotations

import ast

from app.settings import Settings
from tests.architecture import tree


def test_every_setting_is_read_somewhere() -> None:
    read = {
        node.attr
        for path in tree.python("app", "workers")
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.Attribute)
    }
    assert set(Settings.model_fields) - read == set()


def test_settings_are_read_from_the_environment_only_by_their_class() -> None:
    readers = {
        tree.name(path)
        for path in tree.python("app")
        for node in ast.walk(tree.syntax(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv"}
    }
    assert readers == {"app/cli/options.py"}, "only OUTLAST_ACTOR, which is a person and no setting"
