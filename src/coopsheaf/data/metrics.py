"""The metrics by name: what each means, which way is better, for which tasks. Imports no PyTorch.

What they compute is in :mod:`coopsheaf.train.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass

_CLASSES = ("binary", "multiclass")
_LABELS = (*_CLASSES, "multilabel")


@dataclass(frozen=True)
class Metric:
    """What is known of a metric.

    Args:
        label: what people call it.
        meaning: a sentence about it.
        tasks: the kinds of task that it can be computed for.
        higher: whether higher is better.
        share: whether it is a share in [0, 1], which tables show as per cent.
    """

    label: str
    meaning: str
    tasks: tuple[str, ...]
    higher: bool = True
    share: bool = True


# In the order in which they are listed for a task.
METRICS = {
    "auroc": Metric(
        "AUROC",
        "area under the ROC curve; of several classes or labels the mean, each against the rest",
        (*_LABELS, "link"),
    ),
    "accuracy": Metric("accuracy", "share of correct predictions", _CLASSES),
    "ap": Metric(
        "AP",
        "average precision; of several classes or labels the mean, each against the rest",
        (*_LABELS, "link"),
    ),
    "balanced_accuracy": Metric(
        "balanced accuracy", "mean over the classes of the share of each that is found", _CLASSES
    ),
    "f1": Metric("F1", "harmonic mean of precision and recall of the second class", ("binary",)),
    "macro_f1": Metric("macro F1", "mean of the F1 of all classes or labels", _LABELS),
    "recall@p90": Metric(
        "recall at precision 0.9",
        "the largest share of the second class that is found while nine of ten alarms are right",
        ("binary",),
    ),
    "log_loss": Metric(
        "log loss",
        "mean of -log of the probability that was given to what is true",
        _LABELS,
        higher=False,
        share=False,
    ),
    "brier": Metric(
        "Brier score",
        "mean square of the distance of probabilities from what is true (of one of two classes, or "
        "summed over several)",
        _LABELS,
        higher=False,
        share=False,
    ),
    "ece": Metric(
        "calibration error",
        "expected calibration error: how far probabilities are from frequencies, in 15 bins",
        _LABELS,
        higher=False,
        share=False,
    ),
    "mae": Metric("MAE", "mean absolute error", ("regression",), higher=False, share=False),
    "rmse": Metric(
        "RMSE", "root of the mean squared error", ("regression",), higher=False, share=False
    ),
    "r2": Metric(
        "R²",
        "share of the variance that is explained; of several targets the mean",
        ("regression",),
        share=False,
    ),
    "mrr": Metric("MRR", "mean reciprocal rank of links among non-edges", ("link",)),
    "hits@1": Metric("hits at 1", "share of links that rank before all their non-edges", ("link",)),
    "hits@3": Metric("hits at 3", "share of links among the first 3 of their rows", ("link",)),
    "hits@10": Metric("hits at 10", "share of links among the first 10 of their rows", ("link",)),
}


def metrics_of(task: str) -> tuple[str, ...]:
    """The metrics that can be computed for a kind of task."""
    return tuple(name for name, metric in METRICS.items() if task in metric.tasks)


def check_metric(argument: str, name: str, task: str) -> None:
    """Refuse a metric that does not go with a task; what does is listed."""
    if task not in METRICS[name].tasks:
        raise ValueError(
            f"`{argument}` must be one of {', '.join(metrics_of(task))} for the task {task!r}; got "
            f"{name!r}"
        )
