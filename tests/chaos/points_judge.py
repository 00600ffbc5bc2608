"""What must be true of every hit, decided from the records of its run; and the matrix of all. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from app.domain.states import State
from app.failpoints import Action, Point
from tests.chaos.points_hit import Hit
from tests.chaos.records import Finding, History, HomeRow, Part

ACTIONS = tuple(Action)
TRANSPORTS = ("redis", "pg")
TICK_SECONDS = 0.01  # a file's change time may be older by so much than what it is the time of


def judge(hits: Sequence[Hit], history: History) -> Iterator[Finding]:
    """Every job ended once, as its part provides, charged what is right, and called outside as often as is right."""
    homes: dict[str, list[HomeRow]] = defaultdict(list)
    for home in history.homes:
        homes[home.job_id].append(home)
    calls = calls_of(history)
    for hit in hits:
        name = f"{hit.transport} {hit.case.point} {hit.action}"
        owned = homes[hit.job_id]
        if len(owned) != 1:
            yield Finding("homes", hit.job_id, f"{name}: {len(owned)} homes")
            continue
        yield from _judged(hit, owned[0], calls[hit.job_id], history.filings.get(hit.job_id, 0), name)


def _judged(hit: Hit, home: HomeRow, calls: int, filings: int, name: str) -> Iterator[Finding]:
    effect = hit.case.part is Part.EFFECT
    if home.state is not (State.DONE if effect else State.DEAD):
        yield Finding("wrong ending", hit.job_id, f"{name}: {home.state}")
    if home.crashes not in hit.case.charged_by(hit.action):
        yield Finding("charged", hit.job_id, f"{name}: {home.crashes} crashes")
    if calls != hit.case.calls:
        yield Finding("calls", hit.job_id, f"{name}: {calls} outside calls, not {hit.case.calls}")
    if filings != effect:
        yield Finding("duplicate", hit.job_id, f"{name}: filed {filings} times")


def calls_of(history: History) -> Counter[str]:
    """How often the outside was called for each job."""
    job_of = {line.sink_key: line.job_id for line in history.handler if line.event == "perform"}
    counted: Counter[str] = Counter()
    for key, count in history.sink_calls.items():
        counted[job_of.get(key, "")] += count
    return counted


def starts_of(history: History) -> dict[str, list[float]]:
    """When the handler was called for each job."""
    starts: dict[str, list[float]] = defaultdict(list)
    for line in history.handler:
        if line.event == "start":
            starts[line.job_id].append(line.at)
    return starts


def together(histories: Sequence[History]) -> History:
    """The histories of several worlds, as far as they are counted."""
    return History(
        calls=[one for history in histories for one in history.calls],
        handler=[one for history in histories for one in history.handler],
        faults=[one for history in histories for one in history.faults],
        jobs=[one for history in histories for one in history.jobs],
        homes=[one for history in histories for one in history.homes],
        attempts=[one for history in histories for one in history.attempts],
        sink_calls={key: count for history in histories for key, count in history.sink_calls.items()},
        late_refused=sum(history.late_refused for history in histories),
    )


def matrix(hits: Sequence[Hit], history: History) -> list[str]:
    """A row for each point: for each way to fail, on each transport, the hits, and the median and longest recovery."""
    columns = [(action, transport) for action in ACTIONS for transport in TRANSPORTS]
    starts, calls = starts_of(history), calls_of(history)
    crashes = {home.job_id: home.crashes for home in history.homes}
    rows = [_row("point", [f"{action} {transport}" for action, transport in columns], ["starts", "calls", "crashes"])]
    for point in Point:
        here = [hit for hit in hits if hit.case.point is point]
        took = {hit: recovered_seconds(hit, starts.get(hit.job_id, [])) for hit in here}
        cells = [_cell([took[hit] for hit in here if (hit.action, hit.transport) == column]) for column in columns]
        ids = [hit.job_id for hit in here]
        sums = (sum(len(starts.get(one, [])) for one in ids), sum(calls[one] for one in ids))
        rows.append(_row(point, cells, [*map(str, sums), str(sum(crashes.get(one, 0) for one in ids))]))
    return rows


def _row(title: str, cells: Sequence[str], sums: Sequence[str]) -> str:
    return "  ".join([f"  {title:<20}", *(f"{cell:>15}" for cell in cells), *(f"{one:>7}" for one in sums)])


def recovered_seconds(hit: Hit, starts: Sequence[float]) -> float:
    """From the hit to the next start of its job, or where it needed none, to its end."""
    again = [at for at in starts if at > hit.at + TICK_SECONDS]
    return max(0.0, min(again, default=hit.ended_at) - hit.at)


def _cell(seconds: Sequence[float]) -> str:
    took = sorted(seconds)
    return f"{len(took)}: {took[len(took) // 2]:.2f} {took[-1]:.2f}" if took else "-"
