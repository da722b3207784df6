"""Records: whole lines whatever happens, read back as they were."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report.example import make

from coopsheaf.train.records import (
    PassedOver,
    Record,
    RecordError,
    append_record,
    find_records,
    read_records,
    spell_splits,
)

WRITERS, LINES = 4, 250


WRITE_MANY = """
import sys
from pathlib import Path
from coopsheaf.train.records import Record, append_record
path, seed, lines = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for split in range(lines):
    # Lines of very different length would show where two writers met.
    machine = "x" * (split * 37 % 5000)
    append_record(path, Record("csnn", "tolokers", split, seed, "", "auroc", 0.8, 0.8, 1, "0", machine=machine))
"""


def test_writers_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results" / "csnn-tolokers.jsonl"
    command = [sys.executable, "-c", WRITE_MANY, str(path)]
    writers = [subprocess.Popen([*command, str(seed), str(LINES)]) for seed in range(WRITERS)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * WRITERS
    records = read_records([path])
    assert len(records) == WRITERS * LINES
    assert {(r.seed, r.split) for r in records} == {
        (seed, split) for seed in range(WRITERS) for split in range(LINES)
    }
    for seed in range(WRITERS):  # each writer's own lines are in its order
        assert [r.split for r in records if r.seed == seed] == list(range(LINES))


def test_a_half_line_of_a_killed_writer_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_record(path, make(split=0))
    with open(path, "a", encoding="utf-8") as file:
        file.write(make(split=1).to_line()[:100])
    assert [r.split for r in read_records([path])] == [0]


def test_a_half_line_does_not_spoil_what_is_appended_after_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_record(path, make(split=0))
    with open(path, "a", encoding="utf-8") as file:
        file.write(make(split=1).to_line()[:100])
    append_record(path, make(split=2))
    append_record(path, make(split=3))
    assert [r.split for r in read_records([path])] == [0, 2, 3]


def test_a_half_line_may_end_within_a_letter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_record(path, make(split=0))
    line = make(split=1, model="Grüße").to_line().encode()
    with open(path, "ab") as file:
        file.write(line[: line.index("ü".encode()) + 1])
    assert [r.split for r in read_records([path])] == [0]
    append_record(path, make(split=2))
    assert [r.split for r in read_records([path])] == [0, 2]


def test_a_whole_last_line_without_an_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(make(split=0).to_line(), encoding="utf-8")
    append_record(path, make(split=1))
    assert [r.split for r in read_records([path])] == [0, 1]


@pytest.mark.parametrize(
    "line",
    ["{", "not json", "[]", "5", "null", '"text"', "{}", '{"model": "csnn"}'],
)
def test_a_broken_line_in_the_middle_names_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "broken.jsonl"
    whole = make().to_line()
    path.write_text(f"{whole}\n\n{line}\n{whole}\n", encoding="utf-8")
    with pytest.raises(RecordError, match=r"broken\.jsonl, line 3"):
        read_records([path])


WRONG = {
    "model": 5,
    "split": "0",
    "seed": 1.5,
    "val": "0.9",
    "test": [1],
    "best_epoch": True,
    "config": [],
    "versions": {"torch": 2},
    "epochs": 10**30,
    "seconds": {},
    "time": None,
}


@pytest.mark.parametrize("key", WRONG)
def test_a_value_of_another_kind_is_no_record(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.jsonl"
    values = json.loads(make().to_line()) | {key: WRONG[key]}
    path.write_text(json.dumps(values) + "\n", encoding="utf-8")
    with pytest.raises(RecordError, match=rf"a\.jsonl, line 1: not a record \({key}"):
        read_records([path])


def test_bad_lines_are_passed_over_and_told(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    first, second = make(split=0).to_line(), make(split=1).to_line()
    bad = ["[" * 100_000, "{", '{"val": 1e999}', "\udcff", second.replace("csnn", "x" * 100_001)]
    lines = [first, *bad, second, '{"half']
    (tmp_path / "a.jsonl").write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    passed_over = PassedOver()
    for _ in range(2):  # told once, however often they are met
        assert [r.split for r in find_records(tmp_path, passed_over)] == [0, 1]
    assert len(passed_over.reasons) == len(bad) + 1
    for number, reason in enumerate(passed_over.reasons[:-1], start=2):
        assert reason.startswith(f"{tmp_path / 'a.jsonl'}, line {number}: not a record (")
        assert len(reason) < 400
        assert "\n" not in reason
    assert (
        passed_over.reasons[-1] == f"{tmp_path / 'folder.jsonl'}: cannot be read (Is a directory)"
    )
    with pytest.raises(RecordError):
        find_records(tmp_path)


def test_keys_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    values = json.loads(make().to_line()) | {"invented_later": [1, 2]}
    path.write_text(json.dumps(values) + "\n", encoding="utf-8")
    assert read_records([path]) == [make()]


def test_what_is_not_finite_becomes_null(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    config = {"train": {"clip": math.inf, "rates": [math.nan, 1.0]}}
    append_record(path, make(test=math.nan, peak_mb=math.inf, config=config))
    text = path.read_text(encoding="utf-8")
    assert "NaN" not in text
    assert "Infinity" not in text
    (record,) = read_records([path])
    assert record.test is None
    assert record.peak_mb is None
    assert record.config == {"train": {"clip": None, "rates": [None, 1.0]}}


@given(
    name=st.text(max_size=20).filter(lambda text: text.isprintable() or "\n" in text),
    score=st.floats(0, 1),
    split=st.integers(0, 9),
)
def test_a_line_says_all_of_a_record(name: str, score: float, split: int) -> None:
    record = make(dataset=name, test=score, split=split, versions={"torch": name})
    line = record.to_line()
    assert "\n" not in line
    assert Record(**json.loads(line)) == record


def test_the_key_is_what_makes_a_run_the_same_run() -> None:
    same = make()
    assert make(test=0.1, machine="other", commit="other", time="later").key == same.key
    for change in (
        {"model": "gcn"},
        {"dataset": "texas"},
        {"split": 1},
        {"seed": 1},
        {"config_hash": "other"},
        {"model_version": 2},
        {"dataset_checksum": "other"},
    ):
        assert make(**change).key != same.key


def test_records_of_a_folder_are_found(tmp_path: Path) -> None:
    assert find_records(tmp_path / "nothing") == []
    append_record(tmp_path / "b.jsonl", make(split=1))
    append_record(tmp_path / "a.jsonl", make(split=0))
    (tmp_path / "notes.txt").write_text("not records", encoding="utf-8")
    assert [r.split for r in find_records(tmp_path)] == [0, 1]


def test_splits_are_spelled() -> None:
    spelled = [spell_splits(splits) for splits in ((0,), (2, 3, 4), (0, 2, 5))]
    assert spelled == ["split 0", "splits 2-4", "splits 0, 2, 5"]


def test_a_score_that_is_no_number_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    append_record(path, make())
    path.write_text(path.read_text().replace('"test": 0.85', '"test": NaN'))
    (record,) = read_records([path])
    assert record.test is None
