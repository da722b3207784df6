"""The table of metrics."""

from __future__ import annotations

import pytest

from coopsheaf.data.metrics import METRICS, check_metric, metrics_of
from coopsheaf.report.rows import sign_of
from coopsheaf.report.tables import METRIC_LABELS, format_score


def test_errors_and_losses_are_better_when_they_are_small() -> None:
    lower = {name for name, metric in METRICS.items() if not metric.higher}
    assert lower == {"log_loss", "brier", "ece", "mae", "rmse"}
    assert {name for name in METRICS if sign_of(name) < 0} == lower


def test_every_task_has_its_metrics() -> None:
    assert metrics_of("regression") == ("mae", "rmse", "r2")
    assert metrics_of("link") == ("auroc", "ap", "mrr", "hits@1", "hits@3", "hits@10")
    assert "f1" in metrics_of("binary")
    assert "f1" not in metrics_of("multiclass")
    assert "accuracy" not in metrics_of("multilabel")


def test_shares_are_shown_as_per_cent() -> None:
    assert METRIC_LABELS["macro_f1"] == "macro F1, %"
    assert format_score("macro_f1", 0.51234, 0.01) == "51.23 ± 1.00"
    assert METRIC_LABELS["ece"] == "calibration error"
    assert format_score("r2", 0.5, None) == "0.5000"


def test_a_metric_of_another_task_is_refused() -> None:
    check_metric("metric", "rmse", "regression")
    with pytest.raises(ValueError, match=r"`x` must be one of mae, rmse, r2 for .*; got 'ap'"):
        check_metric("x", "ap", "regression")
