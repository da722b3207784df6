"""Names that are nearly right are recognised."""

from __future__ import annotations

import pytest

from coopsheaf.checks import check_choice, did_you_mean


def test_did_you_mean() -> None:
    names = ["csnn", "csnn-random", "Roman_Empire", "gcn"]
    assert did_you_mean("cssn", names) == " (did you mean 'csnn'?)"
    assert did_you_mean("ROMAN empire", names) == " (did you mean 'Roman_Empire'?)"
    assert did_you_mean("zzz", names) == ""
    assert did_you_mean(None, names) == ""
    assert did_you_mean("x" * 10**6, names) == ""  # at once


def test_choices() -> None:
    with pytest.raises(ValueError, match=r"got 'adm' \(did you mean 'adam'\?\)$"):
        check_choice("optimizer", "adm", {"adam": 1, "sgd": 2})
