"""Figures: they open again, say what their axes are, and need nothing but matplotlib."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import torch
from analysis.networks import build, ring
from graphs import randn

from coopsheaf.analysis import (
    adjacency_bound,
    average_by_hop,
    compare_energy,
    compare_influence,
    hop_distances,
    influence_by_hop,
    receptive_growth,
)
from coopsheaf.figures import influence as figures

N, X = 12, randn(12, 5)
MODELS = {name: build(name) for name in ("mlp", "gcn-plain", "nsd-diag")}


def drawn() -> dict[str, tuple[Any, list[str]]]:
    exact = compare_influence(MODELS, X, ring(N)).profiles
    some = compare_influence(MODELS, X, ring(N), num_targets=4).profiles
    bound = average_by_hop(adjacency_bound(ring(N), 2), hop_distances(ring(N)))
    growths = {name: receptive_growth(model, X, ring(N)) for name, model in MODELS.items()}
    names = list(MODELS)
    return {
        "influence": (
            figures.influence_figure(exact, bound=bound, title="On a ring"),
            [*names, "On a ring", "distance (hops)", "bound by powers of Â"],
        ),
        "estimated": (figures.influence_figure(some), [*names, "distance (hops)"]),
        "range": (figures.range_figure(some), [*names, "effective range"]),
        "energy": (
            figures.energy_figure(compare_energy(MODELS, X, ring(N))),
            [*names, "depth (layers)", "relative Dirichlet energy"],
        ),
        "receptive": (
            figures.receptive_figure(growths),
            [*names, "depth (layers)", "receptive field (nodes"],
        ),
    }


@pytest.fixture(scope="module")
def all_drawn() -> dict[str, tuple[Any, list[str]]]:
    return drawn()


KINDS = pytest.mark.parametrize("kind", ["influence", "estimated", "range", "energy", "receptive"])


@KINDS
def test_svg_opens_and_has_its_words(kind: str, all_drawn: dict, tmp_path: Path) -> None:
    figure, words = all_drawn[kind]
    file = figures.save(figure, tmp_path / "new folder" / f"{kind}.svg")
    root = ElementTree.parse(file).getroot()
    assert root.tag.endswith("svg")
    text = " ".join("".join(node.itertext()) for node in root.iter() if node.tag.endswith("text"))
    for word in words:
        assert word in text


@pytest.mark.parametrize(("suffix", "start"), [(".pdf", b"%PDF"), (".PNG", b"\x89PNG")])
def test_other_formats(suffix: str, start: bytes, all_drawn: dict, tmp_path: Path) -> None:
    file = figures.save(all_drawn["range"][0], str(tmp_path / f"figure{suffix}"))
    assert file.read_bytes().startswith(start)


def test_the_same_figure_is_the_same_file(tmp_path: Path) -> None:
    files = [tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "a.pdf", tmp_path / "b.pdf"]
    for file in files:
        figures.save(figures.energy_figure(compare_energy(MODELS, X, ring(N))), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[2].read_bytes() == files[3].read_bytes()


def test_lines_show_the_numbers(all_drawn: dict) -> None:
    profiles = compare_influence(MODELS, X, ring(N)).profiles
    axes = all_drawn["influence"][0].axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    for name, profile in profiles.items():
        seen = profile.rms[profile.rms > 0]
        torch.testing.assert_close(torch.as_tensor(lines[name].get_ydata()), seen)
    assert axes.get_yscale() == "log"
    assert len(set(figures.COLOURS)) == len(figures.MARKERS)
    assert len(all_drawn["estimated"][0].axes[0].collections) == len(MODELS)  # bands
    assert not axes.collections


def test_many_models_stay_apart() -> None:
    profile = influence_by_hop(MODELS["gcn-plain"], X, ring(N))
    figure = figures.influence_figure({f"model {k}": profile for k in range(16)})
    lines = figure.axes[0].get_lines()
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    assert len(looks) == 16


def test_a_range_that_is_not_known_is_left_out(tmp_path: Path) -> None:
    model = build("gcn-plain")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    profile = influence_by_hop(model, X, ring(N))
    figures.save(figures.range_figure({"zero": profile}), tmp_path / "zero.svg")
    figures.save(figures.influence_figure({"zero": profile}), tmp_path / "zero.svg")


def test_bad_input_is_named(all_drawn: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`path` must end in .svg, .pdf or .png; got 'a.gif'"):
        figures.save(all_drawn["range"][0], tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())
    for draw in (figures.influence_figure, figures.range_figure, figures.energy_figure):
        with pytest.raises(ValueError, match="`profiles` must hold at least one model"):
            draw({})
    with pytest.raises(ValueError, match="`growths` must hold at least one model"):
        figures.receptive_figure({})


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    profile = influence_by_hop(MODELS["mlp"], X, ring(N))
    with pytest.raises(ImportError, match=r"pip install 'coopsheaf\[viz\]'"):
        figures.range_figure({"mlp": profile})


def test_names_are_loaded_when_used() -> None:
    code = (
        "import sys, coopsheaf.analysis as analysis\n"
        "assert 'torch' not in sys.modules\n"
        "assert set(analysis.__all__) <= set(dir(analysis))\n"
        "found = [getattr(analysis, name) for name in analysis.__all__]\n"
        "assert all(found)\n"
        "assert callable(analysis.influence) and callable(analysis.route)\n"
        "assert 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    import coopsheaf.analysis

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = coopsheaf.analysis.nothing
