"""Every name Outlast uses at SQS.

A queue's messages are in the SQS queue `<prefix><queue>`, a standard one. SQS takes letters, digits, `-` and `_`, up
to 80 of them; queues are named in lower case, so capitals are free: `D` stands for a dot, `H` for a hash follows where
a name would be too long.
"""

from __future__ import annotations

from hashlib import sha256

NAME_CHARS_MAX = 80
HASH_HEX = 16

DOT, HASHED = "D", "H"


def sqs_name(prefix: str, queue: str) -> str:
    """The SQS queue of a queue; different for different queues."""
    name = prefix + queue.replace(".", DOT)
    if len(name) <= NAME_CHARS_MAX:
        return name
    digest = sha256(queue.encode()).hexdigest()[:HASH_HEX]
    return name[: NAME_CHARS_MAX - HASH_HEX - 1] + HASHED + digest


def queue_of(prefix: str, name: str) -> str | None:
    """The queue of an SQS queue; None for one whose name was too long, or that is not ours."""
    queue = name.removeprefix(prefix)
    if not name.startswith(prefix) or HASHED in queue:
        return None
    return queue.replace(DOT, ".")
