"""What became of each job of a command on many, as it happens, and the exit code of it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from app.cli.exits import ExitCode, code_of, say
from app.cli.formats import Format, cell
from app.domain.answers import Answer
from app.domain.views import JsonText, dump

OUTCOME_WIDTH = 22


class AnswerSheet:
    """Prints answers as they come; JSON waits for the end. `head` are further members of the JSON document."""

    def __init__(self, output: Format, head: Mapping[str, object] | None = None) -> None:
        self._output = output
        self._head = dict(head or {})
        self._texts: list[JsonText] = []
        self._counts: Counter[str] = Counter()
        self._refused: Counter[ExitCode] = Counter()

    def add(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            self._counts[answer.outcome] += 1
            if answer.refused is not None:
                self._refused[code_of(answer.refused)] += 1
            self._print(answer)

    def close(self) -> ExitCode:
        """Prints what is left, sums up on stderr, and says how it went."""
        if self._output is Format.JSON:
            members = [f'"{name}":{dump(value)}' for name, value in self._head.items()]
            print("{" + ",".join([*members, f'"data":[{",".join(self._texts)}]']) + "}")
        say(", ".join(f"{outcome}: {count}" for outcome, count in sorted(self._counts.items())) or "nothing to do")
        return self._code()

    def _print(self, answer: Answer) -> None:
        detail = None if answer.refused is None else answer.refused.detail
        text = dump({"job_id": answer.job_id, "outcome": answer.outcome, "detail": detail})
        match self._output:
            case Format.TABLE:
                print(f"{answer.job_id}  {answer.outcome:{OUTCOME_WIDTH}}  {cell(detail)}", flush=True)
            case Format.JSON:
                self._texts.append(text)
            case Format.JSONL:
                print(text, flush=True)
            case Format.IDS:
                if answer.refused is None:
                    print(answer.job_id, flush=True)

    def _code(self) -> ExitCode:
        if not self._refused:
            return ExitCode.OK
        if len(self._refused) == 1 and self._refused.total() == self._counts.total():
            return next(iter(self._refused))
        return ExitCode.PARTLY_DONE
