"""Pipelines of scikit-learn that end with a graph estimator.

Their steps are fitted to the rows of training and applied to all nodes: messages come from nodes
that are none of the rows, and these must have been through the same steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from coopsheaf.estimators.bound import BoundGraph


def is_pipeline(estimator: Any) -> bool:
    return hasattr(estimator, "steps") and hasattr(estimator, "named_steps")


def final_step(estimator: Any) -> Any:
    """The last step of a pipeline, or the estimator itself."""
    return estimator.steps[-1][1] if is_pipeline(estimator) else estimator


def run_steps(
    estimator: Any, graph: BoundGraph, places: NDArray[np.int64], y: Any, target: Any
) -> tuple[Any, Any]:
    """The estimator with its steps before the last one fitted, and nodes as the last one sees them.

    Args:
        estimator: an estimator that is not fitted, or a pipeline of some.
        graph: all nodes.
        places: ``(k,)`` positions of the rows of training.
        y: ``(k,)`` their targets.
        target: the name of the targets, if they have one: a column of that name is left out.
    """
    if not is_pipeline(estimator) or len(estimator.steps) == 1:
        return estimator, graph.nodes
    features = _features(graph, target)
    before = estimator[:-1]
    before.fit(features.iloc[places] if hasattr(features, "iloc") else features[places], y)
    made = before.transform(features)
    if not hasattr(features, "iloc"):
        return estimator, made
    names = _names(before, made)
    made = made.toarray() if hasattr(made, "toarray") else np.asarray(made)
    if made.shape != (len(graph.names), len(names)):
        raise ValueError(
            f"the steps before the last must keep the rows; they make {made.shape} of "
            f"{len(graph.names)} nodes"
        )
    columns = {graph.names.column: list(graph.names.ids.texts)}
    return estimator, columns | dict(zip(names, made.T, strict=True))


def _features(graph: BoundGraph, target: Any) -> Any:
    """What steps may see of the nodes: a frame without their names and targets, or an array."""
    nodes = graph.nodes
    if hasattr(nodes, "iloc") and hasattr(nodes, "columns"):
        unseen = {graph.names.column, *graph.options["drop"], target}
        return nodes[[name for name in nodes.columns if name not in unseen]]
    if hasattr(nodes, "shape") and len(nodes.shape) == 2 and not hasattr(nodes, "columns"):
        return np.asarray(nodes)
    raise ValueError(
        "a Pipeline must have nodes as a pandas DataFrame or an array of features; got "
        f"{type(nodes).__name__}"
    )


def _names(before: Any, made: Any) -> list[str]:
    """The names of transformed columns, as far as the steps know them."""
    if hasattr(made, "columns"):
        return [str(name) for name in made.columns]
    try:
        return [str(name) for name in before.get_feature_names_out()]
    except (AttributeError, ValueError):
        return [f"x[{i}]" for i in range(made.shape[1])]
