"""What scikit-learn asks an estimator about itself. Imports it only when it asks."""

from __future__ import annotations

import sys
from typing import Any


def make_tags(kind: str, *, names: bool = False) -> Any:
    """The tags of a classifier or a regressor of nodes.

    Args:
        names: its rows are names of nodes, not features.
    """
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

    classes = kind == "classifier"
    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=True, multi_output=not classes),
        transformer_tags=None,
        classifier_tags=ClassifierTags() if classes else None,
        regressor_tags=None if classes else RegressorTags(),
        # Tables have texts, categories and gaps.
        input_tags=InputTags(
            one_d_array=names, string=True, categorical=True, allow_nan=True, sparse=not names
        ),
    )


class NotFitted(ValueError, AttributeError):
    """As scikit-learn's error of the same meaning, which is both."""


def not_fitted(estimator: Any) -> Exception:
    """The error of an estimator that was not trained; scikit-learn's own where it is in use."""
    module = sys.modules.get("sklearn.exceptions")
    kind = NotFitted if module is None else module.NotFittedError
    found: Exception = kind(f"this {type(estimator).__name__} is not trained yet: call fit first")
    return found
