"""What somebody may have meant who typed an option that does not exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopsheaf.checks import did_you_mean
from coopsheaf.models.registry import MODELS
from coopsheaf.train.recipe import find_settings

# The commands that take --set.
_WITH_SETTINGS = ("train", "bench", "sweep", "compare")


def settings_meant(words: Sequence[str]) -> Iterator[str]:
    """For each ``--name`` that is the name of a setting: how to set it."""
    if not words or words[0] not in _WITH_SETTINGS:
        return
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            continue
        if not equals:
            following = words[position + 1] if position + 1 < len(words) else "--"
            value = "VALUE" if following.startswith("--") else following
        paths = find_settings(name[2:], MODELS[_model(words)].settings)
        if paths:
            how = " or ".join(f"--set {path}={value}" for path in paths)
            yield f"coopsheaf: {name} is a setting: {how}"


def check_alone(dataset: str) -> None:
    """Refuse ``MODEL/DATASET``, which ``bench`` takes, where a dataset has a model beside it."""
    model, slash, name = dataset.partition("/")
    if not slash or model not in MODELS:
        return
    from coopsheaf.data.catalogue import DATASETS  # imports PyTorch, which a hint must not wait for

    if name in DATASETS:
        hint = f"say `coopsheaf train {name} --model {model}`"
    else:
        hint = f"there is no dataset {name!r}{did_you_mean(name, DATASETS)}"
    raise ValueError(f"the dataset must be a name alone; got {dataset!r}: {hint}")


def _model(words: Sequence[str]) -> str:
    """The model that a command names, or the default."""
    if "--model" in words[:-1]:
        name = words[words.index("--model") + 1]
        return name if name in MODELS else "csnn"
    if words[0] == "bench":
        found = (word.partition("/")[0] for word in words[1:])
        return next((name for name in found if name in MODELS), "csnn")
    return "csnn"
