"""Networks and runs as others exchange them: ``config.json``, ``model.safetensors``, a card.

This is the layout of the Hub of Hugging Face. A folder may come from a stranger: every key is
checked, sizes are compared with the file of weights, and nothing is executed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from coopsheaf.config import config_hash, from_mapping, to_mapping
from coopsheaf.extras import load_extra
from coopsheaf.files import write_atomically, write_json
from coopsheaf.models.info import PLAIN, ModelInfo
from coopsheaf.models.network import Network
from coopsheaf.models.registry import MODELS
from coopsheaf.schema import (
    an_object,
    brief,
    brief_text,
    find_fault,
    keys,
    kind,
    one_of,
    or_null,
    read_json,
    text,
    truth,
    unknown_keys,
    whole,
)
from coopsheaf.train.card import network_card, run_card
from coopsheaf.train.checkpoint import save_tensors
from coopsheaf.train.run import Run, load_run, save_run
from coopsheaf.train.run_info import CONFIG, CheckpointError
from coopsheaf.train.run_schema import MOST_CHANNELS
from coopsheaf.train.weights import load_network

CARD, WEIGHTS = "README.md", "model.safetensors"
LARGEST_CONFIG = 1 << 20  # bytes of that of a network
NETWORK = "network"
DTYPES = {"float32": torch.float32, "float64": torch.float64}
_SIZES = ("in_channels", "out_channels", "edge_channels", "pe_channels", "num_nodes")
_CONFIG = {
    "library_name": one_of(["coopsheaf"]),
    "kind": one_of([NETWORK]),
    "model": text,
    "model_version": whole(1),
    "in_channels": whole(1, MOST_CHANNELS),
    "out_channels": or_null(whole(1, MOST_CHANNELS)),
    "graph_level": truth,
    "edge_channels": whole(0, MOST_CHANNELS),
    "num_nodes": or_null(whole(1, MOST_CHANNELS)),
    "dtype": one_of(DTYPES),
    "settings": an_object,
    "identity": kind("text of at most 100 letters", lambda v: type(v) is str and len(v) <= 100),
}
_OPTIONAL = {"pe_channels": whole(1, MOST_CHANNELS)}


def save_pretrained(model: Run | Network, folder: str | Path, *, card: str | None = None) -> None:
    """Write a trained run, or a network, into a folder that can be uploaded to the Hub as it is::

        save_pretrained(run, "my-model")
        run = from_pretrained("my-model")

    Of a run everything is kept that using it takes, also how tables are read; where the tables of
    training were is not: it is nobody's business. Names of columns and categories are.

    Args:
        model: a finished run, or a network whose settings are plain values.
        folder: new or without a model.
        card: Markdown for ``README.md``, instead of what is known of data, metric and use.
    """
    folder = Path(folder)
    for name in (CONFIG, WEIGHTS, "run.json"):
        if (folder / name).exists():
            raise ValueError(f"{folder}: holds {name} already; choose another folder")
    if isinstance(model, Run):
        if model.info.get("status") != "finished":
            raise ValueError("the run must have ended before it is shared; resume it")
        info = without_places(model.info)
        save_run(Run(model.model, model.recipe, model.task, model.class_names, info), folder)
        (folder / "run.json").rename(folder / CONFIG)
        text = run_card(info) if card is None else card
    elif isinstance(model, Network):
        config = describe_network(model)
        save_tensors(folder / WEIGHTS, model.state_dict(), {"identity": config["identity"]})
        write_json(folder / CONFIG, config)
        text = network_card(config) if card is None else card
    else:
        raise ValueError(
            f"`model` must be a Run or a network of this library; got {type(model).__name__}"
        )
    write_atomically(folder / CARD, text.encode())


def from_pretrained(name: str | Path, *, revision: str | None = None) -> Run | Network:
    """Read what :func:`save_pretrained` wrote: a run, or a network in evaluation mode.

    Args:
        name: a folder; otherwise the name of a model on the Hub, ``owner/name``, which
            ``huggingface_hub`` fetches (``pip install 'coopsheaf[hub]'``).
        revision: which version on the Hub.
    """
    folder = Path(name)
    if not folder.is_dir():
        folder = _fetch(str(name), revision)
    elif revision is not None:
        raise ValueError(f"`revision` is for names on the Hub; {brief(str(name))} is a folder")
    try:
        config = read_json(folder / CONFIG, 1 << 28)
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: there is no {CONFIG} in it") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder / CONFIG}: not readable JSON ({error})") from None
    if isinstance(config, dict) and config.get("kind") == NETWORK:
        return _read_network(folder, config)
    return load_run(folder)


def without_places(info: Mapping[str, Any]) -> dict[str, Any]:
    """What a run says, without the files and folders of the machine that it was trained on."""
    kept = dict(info)
    if kept.get("data_dir"):
        kept["data_dir"] = None
    tables = kept.get("tables")
    if isinstance(tables, dict):
        places = {role: None for role in ("nodes", "edges", "graphs") if tables.get(role)}
        kept["tables"] = tables | places
    return kept


def describe_network(model: Network) -> dict[str, Any]:
    """What it takes to build a network again, as plain values."""
    positional, named = model.built_with
    signature = inspect.signature(type(model).__init__)
    bound = signature.bind(model, *positional, **named)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind == parameter.VAR_KEYWORD:
            arguments |= arguments.pop(name)
    default = {name: parameter.default for name, parameter in signature.parameters.items()}
    info = _find_info(model, arguments)
    known = {item.name for item in fields(info.settings)} - {"pool"}
    sizes = {*_SIZES, "pool", "self"}
    for name, value in arguments.items():
        plain = value is None or isinstance(value, PLAIN)
        if name in sizes or name in info.fixed or (name in known and plain):
            continue
        if value != default.get(name):
            raise ValueError(
                f"`{name}` of the network must be a plain value that its model {info.name!r} knows "
                f"as a setting, to be written down; got {brief(value)}"
            )
    settings = {name: arguments[name] for name in known if name in arguments}
    settings = {n: v for n, v in settings.items() if v is None or isinstance(v, PLAIN)}
    later = type(model).later_settings  # at their default they are not said
    settings = {n: v for n, v in settings.items() if not (n in later and v == default[n])}
    if arguments.get("pool") is not None:
        settings["pool"] = arguments["pool"]
    config = {
        "library_name": "coopsheaf",
        "kind": NETWORK,
        "model": info.name,
        "model_version": info.version,
        "in_channels": int(arguments["in_channels"]),
        "out_channels": arguments.get("out_channels"),
        "graph_level": arguments.get("pool") is not None,
        "edge_channels": arguments.get("edge_channels") or 0,
        "num_nodes": arguments.get("num_nodes"),
        # Said only where there are some, so that what was written before reads as it did.
        **({"pe_channels": pe} if (pe := arguments.get("pe_channels")) else {}),
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
        "settings": to_mapping(info.settings(**settings)),
    }
    return config | {"identity": f"{NETWORK}/{config_hash(config)}"}


def _find_info(model: Network, arguments: Mapping[str, Any]) -> ModelInfo:
    """The registered model that a network is."""
    for info in MODELS.values():
        same = all(arguments.get(name) == value for name, value in info.fixed.items())
        if same and info.train_maps and info.find_network() is type(model):
            return info
    raise ValueError(
        f"a network must be of a registered model to be written down; {type(model).__name__} is "
        "none with these settings: register_model gives it a name"
    )


def _read_network(folder: Path, config: dict[str, Any]) -> Network:
    path = folder / CONFIG
    fault = find_fault(config, keys(_CONFIG, _OPTIONAL))
    if fault is None and (unknown := unknown_keys(config, _CONFIG | _OPTIONAL)):
        fault = f"it has {unknown[0]}, which this version does not know"
    if fault is None and config["model"] not in MODELS:
        fault = f"model must be one that is registered here; got {brief(config['model'])}"
    if fault is not None:
        raise CheckpointError(f"{path}: not a network of coopsheaf ({fault})")
    try:
        settings = from_mapping(MODELS[config["model"]].settings, config["settings"], CONFIG)
        sizes = {key: config[key] for key in ("graph_level", "edge_channels", "num_nodes")}
        sizes["pe_channels"] = config.get("pe_channels", 0)

        def build() -> Any:
            made = settings.build(config["in_channels"], config["out_channels"], **sizes)
            return made.to(DTYPES[config["dtype"]])

        model = load_network(folder / WEIGHTS, config["identity"], to_mapping(settings), build)
    except CheckpointError:
        raise
    except (AttributeError, MemoryError, OverflowError, RuntimeError, TypeError, ValueError) as e:
        reason = brief_text((str(e) or type(e).__name__).split("\n")[0], 500)
        raise CheckpointError(f"{path}: not a network of coopsheaf ({reason})") from None
    assert isinstance(model, Network)
    return model.eval()


def _fetch(name: str, revision: str | None) -> Path:
    """The files of a model on the Hub, and no others."""
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise CheckpointError(
            f"{brief_text(name)}: there is no such folder, and names on the Hub are owner/name"
        )
    hub = load_extra("huggingface_hub", f"{brief_text(name)!r} is no folder; names on the Hub need")
    wanted = [CONFIG, WEIGHTS, CARD]
    try:
        return Path(hub.snapshot_download(name, revision=revision, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        reason = brief_text(str(error).split("\n")[0])
        raise CheckpointError(f"{brief_text(name)}: cannot be fetched ({reason})") from None
