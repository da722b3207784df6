"""Checkpoints: safetensors with JSON beside the tensors; never pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from coopsheaf.files import write_atomically
from coopsheaf.schema import brief_text
from coopsheaf.train.run_info import CheckpointError


def save_tensors(path: Path, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
    """Write tensors and plain values into one file, atomically."""
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    content = safetensors.torch.save(plain, metadata={"json": json.dumps(meta)})
    write_atomically(path, content)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote; nothing in the file is executed."""
    with _opened(path) as (file, meta):
        return {name: file.get_tensor(name) for name in file.keys()}, meta  # noqa: SIM118


Shapes = dict[str, tuple[torch.Size, torch.dtype]]


def read_shapes(path: Path) -> tuple[Shapes, dict[str, Any]]:
    """Shape and dtype of every tensor of a file, and its plain values; no tensor is read."""
    with _opened(path) as (file, meta):
        found: Shapes = {}
        for name in file.keys():  # noqa: SIM118
            piece = file.get_slice(name)
            shape, kind = torch.Size(piece.get_shape()), piece.get_dtype()
            # An unusual type is none that a network here has: it is named as the file names it.
            found[name] = (shape, _DTYPES.get(kind, kind))
        return found, meta


_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A file and its plain values; whatever is wrong with it is one line."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise CheckpointError(f"{path}: must be a regular file")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get("json", "null"))
            if not isinstance(meta, dict):
                raise CheckpointError(
                    f"{path}: not a checkpoint of coopsheaf (its JSON part is missing)"
                )
            yield file, meta
    except CheckpointError:
        raise
    except FileNotFoundError:
        raise CheckpointError(f"{path}: there is no such checkpoint") from None
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        reason = brief_text(str(error) or type(error).__name__)
        raise CheckpointError(f"{path}: not a readable safetensors file ({reason})") from None


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
