"""What a log line holds, and what it must never hold."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr

from app import telemetry
from app.settings import Settings

JOB = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    hooks = threading.excepthook, sys.unraisablehook
    settings = Settings(
        database_url=SecretStr("postgresql://app:tall%2Forders@db/outlast"),
        redis_url=SecretStr("redis://:brokersecret@redis:6379/0"),
        api_token=SecretStr("bearer-of-news"),
        log_format="json",
        log_level="INFO",
    )
    telemetry.configure(settings, "worker")
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    threading.excepthook, sys.unraisablehook = hooks


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == "", "stdout is for data"
    return [json.loads(line) for line in captured.err.splitlines()]


def test_a_line_says_when_what_who_and_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.bind_process(worker="w1")
    telemetry.log.info("rescued", jobs=3)
    (line,) = _lines(capsys)
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert (line["event"], line["jobs"], line["role"], line["worker"]) == ("rescued", 3, "worker", "w1")


def test_below_the_level_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.log.debug("done")
    logging.getLogger("httpx").info("HTTP Request: GET https://x/?key=1")
    assert _lines(capsys) == []


@pytest.mark.parametrize("secret", ["tall%2Forders", "tall/orders", "brokersecret", "bearer-of-news"])
def test_secrets_of_the_settings_stand_in_no_line(secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.log.warning("away", why=f"cannot reach {secret}", nested={"list": [secret]})
    try:
        raise OSError(f"refused for {secret}")
    except OSError:
        telemetry.log.exception("refused")
    logging.getLogger("library").error("connecting with %s", secret)
    captured = capsys.readouterr().err
    assert captured.count(telemetry.HIDDEN) >= 4
    assert secret not in captured


def test_a_password_in_any_url_is_taken_out(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.log.warning("away", url="amqp://guest:abc@host/v")
    assert _lines(capsys)[0]["url"] == "amqp://guest:***@host/v"


async def test_each_line_carries_the_job_of_its_own_task(capsys: pytest.CaptureFixture[str]) -> None:
    other = UUID(int=JOB.int + 1)
    turn = asyncio.Event()

    async def work(job_id: UUID, attempt: int) -> None:
        telemetry.bind_job(job_id, attempt)
        await turn.wait()
        await asyncio.to_thread(telemetry.log.info, "step")

    tasks = [asyncio.create_task(work(JOB, 1)), asyncio.create_task(work(other, 2))]
    await asyncio.sleep(0)
    turn.set()
    await asyncio.gather(*tasks)
    telemetry.log.info("heartbeat")
    lines = _lines(capsys)
    assert {(line["job"], line["attempt"]) for line in lines[:2]} == {(str(JOB), 1), (str(other), 2)}
    assert "job" not in lines[2]


def test_an_exception_is_its_chain_of_types_texts_and_frames(capsys: pytest.CaptureFixture[str]) -> None:
    marker = "m" * 10_000
    try:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ValueError(marker) from inner
    except ValueError:
        telemetry.log.exception("broken")
    outer, inner = _lines(capsys)[0]["error"]
    assert (outer["type"], inner["type"]) == ("ValueError", "KeyError")
    assert len(outer["text"]) == telemetry.TEXT_CHARS_MAX
    assert "test_an_exception_is_its_chain" in outer["where"][-1]


def test_of_a_deep_stack_the_innermost_frames_are_told() -> None:
    def descend(levels: int) -> list[str]:
        if levels:
            return descend(levels - 1)
        frame = inspect.currentframe()
        assert frame is not None
        return telemetry.stack(frame)

    def fail(levels: int) -> None:
        if not levels:
            raise ValueError("far down")
        fail(levels - 1)

    with pytest.raises(ValueError, match="far down") as raised:
        fail(500)
    for places, name in ((descend(500), "descend"), (telemetry.frames(raised.value), "fail")):
        assert len(places) == telemetry.FRAMES_MAX
        assert places[-1].endswith(f" {name}")


async def test_a_forgotten_task_is_reported_without_the_text_of_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("a caller's secret")
    except ValueError as error:
        telemetry.report_task_failure(asyncio.get_running_loop(), {"message": "never retrieved", "exception": error})
    telemetry.report_task_failure(asyncio.get_running_loop(), {"message": "slow"})
    failed, trouble = _lines(capsys)
    assert failed["error_type"] == "ValueError"
    assert "secret" not in json.dumps(failed)
    assert trouble["what"] == "slow"


def test_what_a_thread_or_a_finalizer_raises_is_reported_without_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    class Closing:
        def __del__(self) -> None:
            raise ValueError("a caller's secret")

    def fail() -> None:
        raise KeyError("a caller's secret")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    Closing()
    failed, unraisable = _lines(capsys)
    assert (failed["event"], failed["error_type"]) == ("thread_failed", "KeyError")
    assert (unraisable["event"], unraisable["error_type"]) == ("unraisable", "ValueError")
    assert failed["where"][-1].endswith(" fail")
    assert "secret" not in json.dumps([failed, unraisable])


def test_stdlib_loggers_come_through_the_same_chain(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("uvicorn.error").warning("port %d is taken", 80)
    broken = logging.makeLogRecord({"name": "library", "levelno": logging.ERROR, "msg": "%d", "args": ("no number",)})
    logging.getLogger().handlers[0].handle(broken)
    first, second = _lines(capsys)
    assert (first["event"], first["logger"], first["level"]) == ("port 80 is taken", "uvicorn.error", "warning")
    assert second["event"] == "%d"


def test_a_closed_stderr_loses_the_line_and_not_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stderr", Full())
    telemetry.log.error("nobody reads this")


def test_lines_of_several_threads_do_not_tear(capsys: pytest.CaptureFixture[str]) -> None:
    threads = [threading.Thread(target=lambda: [telemetry.log.info("x", n=n) for n in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(_lines(capsys)) == 800
