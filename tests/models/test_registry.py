"""Models by name: the registry, settings read off signatures, and networks of the user's own."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from cli.program import subprogram, write_tables
from torch import Tensor, nn
from train.small import node_dataset

from coopsheaf import list_models, make_model, register_model
from coopsheaf.models import CSNN, Network
from coopsheaf.models.info import ModelInfo
from coopsheaf.models.registry import ABSENT, MODELS, find_model, make_settings
from coopsheaf.pages import explore
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.train import default_recipe, load_run, train
from coopsheaf.train.runner import bench

HEAD = """
from itertools import pairwise
from typing import Any
from torch import Tensor, nn
from coopsheaf.models import ModelInfo, Network
from coopsheaf.sheaves import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product

"""
INFO = """
INFO = ModelInfo("sums", "sums_model:Sums", "sums of neighbours")
"""


class Sums(Network):
    """A network of the user's own: sums of neighbours between linear layers."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 8,
        num_layers: int = 2,
        out_channels: int | None = None,
        *,
        bias: bool = True,
        pool: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, pool=pool)
        sizes = [in_channels, *[hidden_channels] * num_layers]
        self.lins = nn.ModuleList(nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes))
        self.readout = nn.Linear(hidden_channels, out_channels or hidden_channels)

    def embed(self, x: Tensor, graph: Graph, **options: Any) -> Tensor:
        for lin in self.lins:
            x = lin(x).relu()
            x = x + sparse_product(x.unsqueeze(1), graph).squeeze(1)
        return x


@pytest.fixture
def own() -> Iterator[ModelInfo]:
    yield register_model("sums", Sums, "sums of neighbours")
    del MODELS.known["sums"]


def test_a_model_is_made_by_its_name() -> None:
    model = make_model("csnn", 5, 3, stalk_dim=2, num_layers=4, learner="sage-projected")
    assert isinstance(model, CSNN)
    assert (model.stalk_dim, model.num_layers, model.pool) == (2, 4, None)
    assert make_model("gcn", 5, 3, hidden_channels=8, graph_level=True, pool="max").pool is not None
    with pytest.raises(ValueError, match=r"`model` must be one of 'csnn'.*got 'cssn'"):
        make_model("cssn", 5, 3)
    with pytest.raises(ValueError, match=r"`setting of csnn` must be one of .*got 'stalks'"):
        make_model("csnn", 5, 3, stalks=2)


@pytest.mark.parametrize("name", list_models())
def test_settings_are_the_arguments_of_the_network(name: str) -> None:
    """Defaults have one home: a network built from settings is one built from nothing."""
    info = find_model(name)
    settings = info.settings()
    network = info.find_network()
    torch.manual_seed(0)
    nodes = {} if info.inductive else {"num_nodes": 7}
    plain = network(5, out_channels=3, **info.fixed, **info.defaults, **nodes)
    torch.manual_seed(0)
    built = settings.build(5, 3, num_nodes=7)
    assert repr(built) == repr(plain)
    for key, value in plain.state_dict().items():
        assert torch.equal(value, built.state_dict()[key])
    assert info.edge_weight == network.takes_edge_weight
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_settings_are_plain_values() -> None:
    kinds = {type(value) for value in vars(make_settings("csnn")).values()}
    assert kinds <= {int, float, str, bool, type(None)}
    assert make_settings("csnn").checkpoint_layers is None  # came later: in no recorded hash
    assert make_settings("csnn", checkpoint_layers=True).build(5, 3).checkpoint_layers


def test_a_network_of_ones_own_is_trained_recorded_loaded_and_explored(
    own: ModelInfo, tmp_path: Path
) -> None:
    data = node_dataset()
    run = train(data, "sums", settings={"train.epochs": 3, "model.bias": False}, out=tmp_path / "a")
    assert run.scores["val"] >= 0
    again = load_run(tmp_path / "a")
    assert isinstance(again.model, Sums)
    assert again.model.lins[0].bias is None
    assert "<html" in explore(again, data).html
    recipe = default_recipe("sums").set("train.epochs=2")
    folders = {"results": tmp_path / "results", "work": tmp_path / "work"}
    assert not next(iter(bench(recipe, data, [0], **folders))).skipped
    assert next(iter(bench(recipe, data, [0], **folders))).skipped
    assert own.settings().build(4, 2).in_channels == 4


def test_what_is_not_a_model_is_refused(own: ModelInfo) -> None:
    with pytest.raises(ValueError, match="there is a model 'sums' already"):
        register_model("sums", Sums)
    register_model("sums", Sums, replace=True, version=2)
    assert find_model("sums").version == 2
    with pytest.raises(
        ValueError, match=r"`network` must be a subclass of coopsheaf.models.Network"
    ):
        register_model("linear", nn.Linear)  # type: ignore[arg-type]

    class Bare(Sums):
        def __init__(self, in_channels: int, depth: int) -> None:
            super().__init__(in_channels)

    with pytest.raises(ValueError, match="`Bare` must have a default for 'depth'"):
        register_model("bare", Bare)
    assert "bare" not in MODELS
    with pytest.raises(ValueError, match="must be given as a ModelInfo; got str"):
        MODELS.add("csnn")  # type: ignore[arg-type]


def test_another_package_brings_a_model_to_the_command_line(tmp_path: Path) -> None:
    """By an entry point of the group ``coopsheaf.models``, as an installed package has it."""
    site = tmp_path / "site"
    about = site / "sums-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sums\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[coopsheaf.models]\nsums = sums_model:INFO\n")
    (site / "sums_model.py").write_text(HEAD + inspect.getsource(Sums) + INFO)
    nodes, edges = write_tables(tmp_path)
    words = ("train", "--nodes", nodes, "--edges", edges, "--target", "label", "--epochs", 2)
    environment = {"PYTHONPATH": str(site)}
    done = subprogram(*words, "--model", "sums", "--out", "run", cwd=tmp_path, **environment)
    assert done.code == 0, done.err
    assert "sums: recipe default" in done.out
    done = subprogram("predict", "run", "-o", "out.csv", cwd=tmp_path, **environment)
    assert done.code == 0, done.err
    done = subprogram("predict", "run", "-o", "two.csv", cwd=tmp_path)
    assert done.code == 2
    assert "model.name must be one of csnn" in done.err


def test_a_system_that_is_not_here_is_refused_by_name_with_the_reason() -> None:
    with pytest.raises(ValueError, match="there is no model 'wrgat' here: its relations come from"):
        make_model("wrgat", 5, 3)
    assert not set(ABSENT) & set(MODELS)
