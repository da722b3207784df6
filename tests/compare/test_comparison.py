"""What records say together: who was chosen, how sure it is, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from compare.tiny import plan, record

from coopsheaf.compare.comparison import Comparison, conclude, load_comparison
from coopsheaf.compare.plan import ComparisonError, enter
from coopsheaf.report.paired import Paired
from coopsheaf.train.records import Record, append_record


def scores(model: str, tests: list[float], vals: list[float] | None = None) -> list[Record]:
    vals = vals or tests
    return [record(model, k, 0, val, test) for k, (val, test) in enumerate(zip(vals, tests, strict=True))]  # fmt: skip


def compare(**tests: list[float]) -> Comparison:
    names = {name.replace("_", "-"): values for name, values in tests.items()}
    records = [r for name, values in names.items() for r in scores(name, values)]
    folds = len(next(iter(names.values())))
    return conclude(plan(dict.fromkeys(names, 1), folds), records)


def test_validation_chooses_in_each_fold_and_test_does_not() -> None:
    records = [
        record("csnn", 0, 0, val=0.6, test=0.9),
        record("csnn", 0, 1, val=0.7, test=0.5),
        record("csnn", 1, 0, val=0.7, test=0.4),
        record("csnn", 1, 1, val=0.7, test=0.8),  # the first of equals
        record("csnn", 2, 0, val=None, test=None),  # came to nothing
        record("csnn", 2, 1, val=0.1, test=0.3),
    ]
    (model,) = conclude(plan({"csnn": 2}), records).models
    assert model.test == {0: 0.5, 1: 0.4, 2: 0.3}
    assert model.chosen == {0: 1, 1: 0, 2: 1}
    assert (model.fits, model.failed, model.seconds) == (6, 1, 6.0)
    assert model.mean == pytest.approx(0.4)
    lower = [record("csnn", 0, t, val=v, test=v, metric="mae") for t, v in enumerate((2.0, 1.0))]
    (model,) = conclude(plan({"csnn": 2}, 1, "mae", task="regression"), lower).models
    assert model.chosen == {0: 1}  # an error: less is better


def test_a_fold_without_all_its_trials_does_not_count() -> None:
    records = [record("csnn", 0, 0, 0.5, 0.5), record("csnn", 0, 1, 0.5, 0.5), record("csnn", 1, 0, 0.9, 0.9)]  # fmt: skip
    comparison = conclude(plan({"csnn": 2}, 2), records)
    assert comparison.folds == (0,)
    assert not comparison.is_complete
    assert "1 of 4 fits are missing" in str(comparison)
    assert "1 of 2 folds" in str(comparison)


@pytest.mark.parametrize(
    "change",
    [{"metric": "auroc"}, {"dataset_checksum": "other"}, {"seed": 1}, {"model_version": 2}, {"dataset": "b"}],
)  # fmt: skip
def test_records_of_something_else_do_not_count(change: dict[str, object]) -> None:
    (model,) = conclude(plan({"csnn": 1}, 1), [record("csnn", 0, 0, 0.5, 0.5, **change)]).models
    assert model.test == {}


def test_differences_are_paired_and_corrected() -> None:
    comparison = compare(csnn=[0.8, 0.7, 0.9], mlp=[0.7, 0.65, 0.75])
    paired = comparison.paired("csnn", "mlp")
    assert paired == Paired((0.8, 0.7, 0.9), (0.7, 0.65, 0.75), 1.0, 20 / 60)
    with pytest.raises(ValueError, match="`name` must be one of csnn, mlp; got 'gcn'"):
        comparison.paired("csnn", "gcn")


def test_the_best_are_those_of_validation() -> None:
    records = [*scores("csnn", [0.9, 0.9], [0.1, 0.1]), *scores("sage-plain", [0.5, 0.5], [0.6, 0.6]), *scores("mlp", [0.4, 0.4])]  # fmt: skip
    comparison = conclude(plan({"csnn": 1, "sage-plain": 1, "mlp": 1}, 2), records)
    best = comparison.best(sees_graph=True)
    assert best is not None
    assert best.name == "sage-plain"
    assert comparison.reference == "csnn"
    without = compare(sage_plain=[0.3, 0.3], mlp=[0.4, 0.4])
    assert without.reference == "mlp"


GOOD, BAD = [0.80, 0.82, 0.81, 0.79], [0.70, 0.73, 0.70, 0.68]
NOISY = [0.9, 0.6, 0.8, 0.7]


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ({"csnn": GOOD, "mlp": BAD}, "The graph adds 0.1025 ± 0.0"),
        ({"csnn": BAD, "mlp": GOOD}, "The graph does harm: -0.1025 ± 0.0"),
        ({"csnn": NOISY, "mlp": BAD}, "Whether the graph helps is undecided: +0.0475 ± "),
        ({"csnn": GOOD, "mlp": [x - 0.001 for x in GOOD]}, "The graph adds 0.0010 ± 0.0000 AP"),
        ({"csnn": GOOD, "mlp": [0.801, 0.819, 0.811, 0.789]}, "The graph adds nothing to speak of: +0.0000 ± 0.0"),
        ({"csnn": GOOD[:1], "mlp": BAD[:1]}, "which proves nothing"),
        ({"csnn": GOOD, "boosted_neighbours": BAD}, "CSNN is better than boosted trees with neighbour means, which are at -0.1025 ± "),
        ({"csnn": BAD, "boosted_neighbours": GOOD}, "Boosted trees with neighbour means are better than CSNN: +0.1025 ± "),
        ({"csnn": GOOD, "boosted_neighbours": [0.801, 0.819, 0.811, 0.789]}, "Boosted trees with neighbour means are as good as CSNN: "),
        ({"csnn": GOOD, "boosted_neighbours": NOISY}, "Whether boosted trees with neighbour means are as good as CSNN is undecided: -0.0550 ± "),
    ],
)  # fmt: skip
def test_sentences(tests: dict[str, list[float]], said: str) -> None:
    assert said in compare(**tests).sentence


def test_text_markdown_and_html_say_the_same_and_trust_no_name() -> None:
    comparison = compare(csnn=GOOD, mlp=BAD)
    for text in (str(comparison), comparison.to_markdown(), comparison._repr_html_()):
        assert "0.8050 ± 0.0112" in text
        assert "-0.1025 ± 0.0" in text
        assert "worse" in text
        assert "The graph adds 0.1025" in text.replace("\\", "")
    odd = conclude(plan({"csnn": 1}, 4, dataset="<b>|*", remarks=("<i>",)), [])
    assert "<b>" not in odd._repr_html_()
    assert "<i>" not in odd._repr_html_()
    assert "&lt;b&gt;\\|\\*" in odd.to_markdown()
    assert "Nothing can be said yet" in str(odd)


def test_a_folder_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    made = plan({"csnn": 1, "mlp": 1}, 2, remarks=("say this",))
    enter(folder, made)
    for one in (*scores("csnn", [0.5, 0.6]), *scores("mlp", [0.4, 0.4])):
        append_record(folder / "records" / f"{one.model}-own.jsonl", one)
    comparison = load_comparison(folder)
    assert comparison.plan == made
    assert comparison.is_complete
    assert comparison.model("csnn").test == {0: 0.5, 1: 0.6}
    enter(folder, plan({"csnn": 4}, 2))  # other models and trials use what is there
    with pytest.raises(ComparisonError, match=r"holds another comparison \(other data, folds, met"):
        enter(folder, plan({"csnn": 1}, 3))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not a comparison of coopsheaf"),
        ("[]", "must be an object"),
        ('{"format": 1}', "lacks"),
        (None, "there is no compare.json"),
    ],
)
def test_files_of_strangers(tmp_path: Path, text: str | None, reason: str) -> None:
    if text is not None:
        (tmp_path / "compare.json").write_text(text)
    with pytest.raises(ComparisonError, match=reason) as error:
        load_comparison(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [{"folds": []}, {"models": []}, {"metric": 3}, {"format": 2}, {"folds": [{"number": "a"}]}, {"seed": -1}],
)  # fmt: skip
def test_plans_of_strangers(tmp_path: Path, change: dict[str, object]) -> None:
    from coopsheaf.files import write_json

    write_json(tmp_path / "compare.json", plan({"csnn": 1}).to_plain() | change)
    with pytest.raises(ComparisonError, match="not a comparison of coopsheaf"):
        load_comparison(tmp_path)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ComparisonError, match="holds files and no comparison"):
        enter(tmp_path, plan({"csnn": 1}))
