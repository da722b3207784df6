"""Thresholds and calibration of a classifier, by the names that training has for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from coopsheaf import CSNNClassifier


def rare(seed: int = 0) -> tuple[NDArray, NDArray, NDArray]:
    """300 nodes, one in seven of them positive, and random edges."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(300, 4))
    y = np.where(x[:, 0] + draw.normal(size=300) > 1.5, "yes", "no")
    return x, y, draw.integers(0, 300, (2, 900))


def test_a_threshold_decides_and_weights_are_calibrated(tmp_path: Path) -> None:
    x, y, edges = rare()
    settings = {"epochs": 30, "class_weights": True, "metric": "ap", "threshold": "f1"}
    model = CSNNClassifier(**settings).fit(x, y, edges=edges)
    decision = model.run_.decision
    assert decision.calibrated
    assert decision.rule == "f1"
    chance = model.predict_proba(x, edges)[:, 1]
    assert (model.predict(x, edges) == np.where(chance > decision.threshold, "yes", "no")).all()
    model.save(tmp_path / "model")
    again = CSNNClassifier.load(tmp_path / "model")
    assert (again.predict(x, edges) == model.predict(x, edges)).all()
    assert again.get_params()["threshold"] == "f1"
    raw = CSNNClassifier(**settings | {"calibrate": False}).fit(x, y, edges=edges)
    assert not raw.run_.decision.calibrated
    # With weights the share of positives is far too high, unless it is calibrated.
    share, found = (y == "yes").mean(), raw.predict_proba(x, edges)[:, 1].mean()
    assert found - share > 0.08
    assert abs(chance.mean() - share) < (found - share) / 2


def test_a_rule_that_is_none() -> None:
    x, y, edges = rare()
    with pytest.raises(ValueError, match="threshold"):
        CSNNClassifier(epochs=1, threshold="luck").fit(x, y, edges=edges)
