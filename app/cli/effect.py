"""`outlast effect`: what a job did to the outside world, and settling what nobody knows."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.exits import say
from app.cli.formats import Format, Row, show_rows
from app.cli.job_rows import when
from app.cli.options import Actor, JobId, Output, Yes, actor, consent
from app.cli.session import on_database
from app.domain.reasons import checked_reason
from app.domain.views import EffectView, effect_json
from app.settings import Settings
from app.store.database import Database
from app.usecases import read
from app.usecases.resolve import resolve_not_performed, resolve_performed

TITLES = ("key", "state", "policy", "calls", "attempt", "begun at", "recorded at", "result")

commands = typer.Typer(no_args_is_help=True, help="Look at effects and settle those in doubt.")


@commands.command("list")
def list_effects(job_id: JobId, output: Output = Format.TABLE) -> None:
    """List the effects of a job in the order they were begun."""
    found = on_database(lambda db, _: read.effects(db, job_id))
    show_rows(output, TITLES, [_row(effect) for effect in found])


@commands.command("resolve")
def resolve(
    job_id: JobId,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The effect's key.")],
    reason: Annotated[str, typer.Option(help="How it was found out, for the audit.")],
    performed: Annotated[
        bool | None, typer.Option("--performed/--not-performed", help="Whether the effect happened.")
    ] = None,
    result: Annotated[str | None, typer.Option(metavar="JSON", help="What it answered; null by default.")] = None,
    force: Annotated[bool, typer.Option(help="Although the worker that began it may be alive; audited.")] = False,
    yes: Yes = False,
    who: Actor = None,
) -> None:
    """Settle an effect of a dead job whose outcome is unknown; then the job can be replayed.

    What was performed goes on record with its result and is not performed again. What was not performed
    may be performed by the next attempt; that waits until the worker that began it is certainly gone.
    """
    if performed is None:
        raise typer.BadParameter("say --performed or --not-performed")
    if not performed and result is not None:
        raise typer.BadParameter("--result goes with --performed")
    if performed and force:
        raise typer.BadParameter("--force goes with --not-performed")
    why = checked_reason(reason)
    consent(yes, f"resolve {key} of {job_id} as {'performed' if performed else 'not performed'}")

    async def work(db: Database, settings: Settings) -> None:
        by = actor(who)
        if performed:
            text = "null" if result is None else result
            await resolve_performed(db, settings, job_id, key, result=text, reason=why, actor=by)
        else:
            await resolve_not_performed(db, settings, job_id, key, forced=force, reason=why, actor=by)

    on_database(work)
    say(f"{key} of {job_id} is resolved; outlast dead replay {job_id} runs the job again")


def _row(effect: EffectView) -> Row:
    cells = (
        *(effect.key, effect.state, effect.policy, effect.calls, effect.attempt),
        *(when(effect.intent_at), when(effect.recorded_at), effect.result),
    )
    return Row(effect.key, effect_json(effect), cells)
