"""Tensors and plain values in one file, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.torch
import torch
from graphs import randn

from coopsheaf.train.checkpoint import load_tensors, pack, save_tensors, unpack


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """However it lies in memory, with or without a gradient."""
    tensors = {
        "turned": randn(3, 4).T,
        "learned": randn(2).requires_grad_(),
        "spread": randn(4, 4)[:, ::2],
        "whole": torch.arange(3),
        "none": randn(0, 2),
    }
    meta = {"identity": "a", "rates": [0.1], "state": {"epoch": 3, "best": {"val": 0.5}}}
    save_tensors(tmp_path / "file", tensors, meta)
    found, about = load_tensors(tmp_path / "file")
    assert about == meta
    assert set(found) == set(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor.detach()), name
        assert found[name].dtype == tensor.dtype


def test_groups_of_tensors_are_kept_apart() -> None:
    both = {**pack("model", {"w": randn(1)}), **pack("best", {"w": randn(2)}), **pack("models", {"w": randn(3)})}  # fmt: skip
    assert torch.equal(unpack("model", both)["w"], randn(1))
    assert list(unpack("model", both)) == ["w"]
    assert unpack("mod", both) == {}


def test_files_of_others_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(ValueError, match="there is no such checkpoint"):
        load_tensors(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="not a readable safetensors file"):
        load_tensors(path)
    safetensors.torch.save_file({"w": randn(1)}, path)
    with pytest.raises(ValueError, match="its JSON part is missing"):
        load_tensors(path)
    safetensors.torch.save_file({"w": randn(1)}, path, metadata={"json": "[1]"})
    with pytest.raises(ValueError, match="not a checkpoint of coopsheaf"):
        load_tensors(path)
