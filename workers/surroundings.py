"""What this worker sees of the others, and which kinds it therefore claims straight from PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from app.store.fleet import Live


def claim_directly(
    fleet: Sequence[Live], queue: str, mine: Collection[str], *, broker_ok: bool, transport: str
) -> frozenset[str]:
    """The kinds of `queue` that this worker takes without the broker.

    All of them when there is no broker, it is away, or no relay feeds it; else those that a live worker of the
    queue lacks, because the relay does not publish them there.
    """
    kinds = frozenset(mine)
    fed = any(one.role == "relay" and one.leader and one.broker_ok for one in fleet)
    if transport == "pg" or not broker_ok or not fed:
        return kinds
    others = [one for one in fleet if one.role == "worker" and queue in one.queues and not one.draining]
    return frozenset(kind for kind in kinds if any(kind not in one.kinds for one in others))
