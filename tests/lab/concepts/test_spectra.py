"""The spectra of four operators on one small graph."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from coopsheaf.figures.influence import save
from lab.concepts.spectra import small_spectra_figure


def test_the_small_graph_shows_the_difference(tmp_path: Path) -> None:
    figure = small_spectra_figure()
    points = {
        axes.get_title().split("\n")[0]: torch.as_tensor(axes.collections[0].get_offsets().data)
        for axes in figure.axes
    }
    undirected = points["undirected Δ"]
    assert not undirected[:, 1].any()
    assert undirected[:, 0].min() > -1e-12
    assert undirected[:, 0].max() < 2
    for name in ("Δₒᵤₜ", "Δᵢₙᵀ", "Δᵢₙᵀ Δₒᵤₜ"):
        assert points[name].shape == (48, 2)
        assert points[name][:, 1].abs().max() > 0.1
    assert points["Δᵢₙᵀ Δₒᵤₜ"][:, 0].min() < 0  # negative real parts do occur
    once, again = (save(small_spectra_figure(), tmp_path / f"{k}.svg") for k in range(2))
    assert once.read_bytes() == again.read_bytes()


def test_a_graph_too_small_is_refused() -> None:
    with pytest.raises(ValueError, match="`num_nodes` must be an integer of at least 4; got 3"):
        small_spectra_figure(num_nodes=3)
