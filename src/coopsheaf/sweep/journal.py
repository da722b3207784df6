"""The journal of a sweep: what its lines must hold, since trials are replayed from them.

A line that is none cannot be passed over as in a file of records: the lines after it count on it.
It is an error that names file, line and reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coopsheaf.files import append_line, is_json
from coopsheaf.schema import (
    Kind,
    an_object,
    anything,
    brief_text,
    find_fault,
    keys,
    kind,
    many,
    or_null,
    text,
    whole,
)

MOST_TRIALS = 10_000_000
# What replaying a line that looks right and is not may end in.
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)

_any_number = kind("a number", lambda v: type(v) in (int, float))
_one_number = kind(
    "a list of one number",
    lambda v: isinstance(v, list) and len(v) == 1 and type(v[0]) in (int, float),
)
_scores = keys(
    {},
    {
        "vals": many(or_null(_any_number)),
        "parameters": whole(),
        "seconds": or_null(_any_number),
    },
)
# What a sweep keeps with a study or a trial.
_attributes = keys(
    {},
    {
        "trials": whole(high=MOST_TRIALS),
        "slot": whole(high=MOST_TRIALS),
        "scores": _scores,
        "config": text,
        "same_as": or_null(whole()),
        "error": text,
        "worker": text,
    },
)
_system = keys({}, {"fixed_params": an_object})
_study, _trial = {"study_id": whole()}, {"trial_id": whole()}

# What Optuna writes, by the number of the operation.
LINES: dict[int, Kind] = {
    0: keys({"study_name": text, "directions": many(whole(high=2), most=1)}),
    1: keys(_study),
    2: keys({**_study, "user_attr": _attributes}),
    3: keys({**_study, "system_attr": an_object}),
    4: keys(
        _study,
        {
            "state": whole(high=4),
            "value": or_null(_any_number),
            "values": or_null(_one_number),
            "user_attrs": _attributes,
            "system_attrs": _system,
            "distributions": an_object,
            "params": an_object,
        },
    ),
    5: keys(
        {
            **_trial,
            "param_name": text,
            "param_value_internal": _any_number,
            "distribution": text,
        }
    ),
    6: keys({**_trial, "state": whole(high=4), "values": or_null(_one_number)}),
    7: keys({**_trial, "step": whole(), "intermediate_value": _any_number}),
    8: keys({**_trial, "user_attr": _attributes}),
    9: keys({**_trial, "system_attr": _system}),
    10: anything,  # other programs write it; Optuna passes over it
}
_HEAD = keys({"op_code": whole(high=max(LINES)), "worker_id": text})


class JournalError(ValueError):
    """A journal that cannot be replayed; names file and line."""


def line_fault(line: Any) -> str | None:
    """What is wrong with a line of a journal."""
    return find_fault(line, _HEAD) or find_fault(line, LINES[line["op_code"]])


def journal_storage(path: Path) -> Any:
    """Optuna's storage of trials in a journal; whatever is wrong with the file is one line."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    def broken(number: int, reason: str) -> JournalError:
        return JournalError(
            f"{path}, line {number}: not a line of a sweep's journal ({brief_text(reason)})"
        )

    class Journal(JournalFileBackend):
        """Lines under our own lock: none is left behind by a killed process, nor half a line."""

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            if logs:
                lines = (json.dumps(log, separators=(",", ":")) for log in logs)
                append_line(path, "\n".join(lines), is_whole=is_json)

        def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
            number = log_number_from
            try:
                for line in super().read_logs(log_number_from):
                    number += 1
                    fault = line_fault(line)
                    if fault is not None:
                        raise broken(number, fault)
                    yield line
            except JournalError:
                raise
            except RecursionError:
                raise broken(number + 1, "nested too deeply") from None
            except ValueError as error:
                raise broken(number + 1, str(error)) from None

    class Storage(JournalStorage):
        """Says which line it cannot replay."""

        def _sync_with_backend(self) -> None:
            try:
                super()._sync_with_backend()
            except JournalError:
                raise
            except FAULTS as error:
                number = self._replay_result.log_number_read
                raise broken(number, f"{type(error).__name__}: {error}") from None

    return Storage(Journal(str(path)))
