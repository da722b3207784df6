"""Checkpoints: safetensors with JSON beside the tensors; never pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from coopsheaf.files import write_atomically
from coopsheaf.train.run_info import CheckpointError


def save_tensors(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write tensors and plain values into one file, atomically."""
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    content = safetensors.torch.save(plain, metadata={"json": json.dumps(meta)})
    write_atomically(path, content)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; nothing in the file is executed."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get("json", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no such checkpoint") from None
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path}: not a readable safetensors file ({reason})") from None
    if not isinstance(meta, dict):
        raise CheckpointError(f"{path}: not a checkpoint of coopsheaf (its JSON part is missing)")
    return tensors, meta


def pack(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Put a name in front of each tensor's."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def unpack(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that :func:`pack` named so."""
    start = f"{prefix}/"
    return {
        name.removeprefix(start): tensor
        for name, tensor in tensors.items()
        if name.startswith(start)
    }
