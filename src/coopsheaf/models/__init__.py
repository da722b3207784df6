"""Whole networks: encoder, layers, readout; and the registry of models by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coopsheaf.models.bunn import BuNN
    from coopsheaf.models.cognn import CoGNN
    from coopsheaf.models.csnn import CSNN
    from coopsheaf.models.match import MatchNetwork
    from coopsheaf.models.network import Network
    from coopsheaf.models.nsd import NSD
    from coopsheaf.models.plain import PlainGAT, PlainGCN, PlainMLP, PlainSAGE
    from coopsheaf.models.platonov import (
        PlatonovGAT,
        PlatonovGATSep,
        PlatonovGCN,
        PlatonovGT,
        PlatonovGTSep,
        PlatonovNetwork,
        PlatonovResNet,
        PlatonovSAGE,
    )
    from coopsheaf.models.snn import SNN

_HOME = {
    "CSNN": "csnn",
    "NSD": "nsd",
    "SNN": "snn",
    "BuNN": "bunn",
    "CoGNN": "cognn",
    "MatchNetwork": "match",
    "Network": "network",
    "PlainGAT": "plain",
    "PlainGCN": "plain",
    "PlainMLP": "plain",
    "PlainSAGE": "plain",
    "PlatonovGAT": "platonov",
    "PlatonovGATSep": "platonov",
    "PlatonovGCN": "platonov",
    "PlatonovGT": "platonov",
    "PlatonovGTSep": "platonov",
    "PlatonovNetwork": "platonov",
    "PlatonovResNet": "platonov",
    "PlatonovSAGE": "platonov",
}

__all__ = [
    "CSNN",
    "NSD",
    "SNN",
    "BuNN",
    "CoGNN",
    "MatchNetwork",
    "Network",
    "PlainGAT",
    "PlainGCN",
    "PlainMLP",
    "PlainSAGE",
    "PlatonovGAT",
    "PlatonovGATSep",
    "PlatonovGCN",
    "PlatonovGT",
    "PlatonovGTSep",
    "PlatonovNetwork",
    "PlatonovResNet",
    "PlatonovSAGE",
]


def __getattr__(name: str) -> Any:
    # Loaded when used: the registry is read by programs that need no PyTorch.
    if name in _HOME:
        return getattr(import_module(f"coopsheaf.models.{_HOME[name]}"), name)
    raise AttributeError(f"module 'coopsheaf.models' has no attribute {name!r}")
