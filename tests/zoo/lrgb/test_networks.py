"""The networks with all that the peptides give them: counts, recipes, what is seen and refused.

Batches, padding and permutations are in `tests/zoo/test_peptides.py`, for all networks of the set.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_geometric.data import Batch
from zoo.molecules import build_recipe, call, molecules

from coopsheaf.models.network import Network
from coopsheaf.models.registry import make_model
from coopsheaf.nn.encoders import ATOM_VOCABULARY, BOND_VOCABULARY
from coopsheaf.train.loop import _set_learning_rate
from coopsheaf.train.recipes import load_recipe

NETWORKS = ("gcn-lrgb", "gine", "gatedgcn", "gps")
EACH = pytest.mark.parametrize("name", NETWORKS)
KINDS = pytest.mark.parametrize("kind", ["rwse", "lappe"])
# Published with the settings; of struct there are eleven outputs.
COUNTS = {
    "gcn-lrgb/peptides-func": 485_741,
    "gcn-lrgb/peptides-struct": 488_061,
    "gine/peptides-func": 490_966,
    "gine/peptides-struct": 492_301,
    "gatedgcn/peptides-func": 492_521,
    "gatedgcn/peptides-struct": 445_051,
    "gps/peptides-func": 479_234,
    "gps/peptides-struct": 451_931,
}
OURS = ("csnn/peptides-func", "csnn/peptides-struct", "bunn/peptides-func")


def count(network: Network) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", COUNTS)
def test_parameters_are_as_many_as_published(name: str) -> None:
    assert count(build_recipe(name)) == COUNTS[name]


@pytest.mark.parametrize("name", OURS)
def test_our_own_settings_keep_the_budget(name: str) -> None:
    assert 300_000 < count(build_recipe(name)) <= 500_000


@pytest.mark.parametrize("name", [*COUNTS, *OURS])
def test_the_protocol_is_the_same_for_all(name: str) -> None:
    train = load_recipe(name).train
    assert (train.optimizer, train.lr, train.weight_decay) == ("adamw", 1e-3, 0.0)
    assert (train.batch_size, train.epochs, train.clip) == (200, 250, 1.0)
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)])
    rates = {}
    for epoch in (0, 2, 5, 127, 250):
        _set_learning_rate(optimizer, train, epoch)
        rates[epoch] = optimizer.param_groups[0]["lr"]
    assert rates == pytest.approx({0: 1e-9, 2: 4e-4, 5: 1e-3, 127: 5.032e-4, 250: 0.0}, rel=1e-3)


def build(name: str, kind: str, **others: Any) -> Network:
    torch.manual_seed(0)
    options: dict[str, Any] = {
        "graph_level": True, "pe_channels": 20, "edge_channels": 3, "hidden_channels": 16,
        "num_layers": 3, "encoder": "atoms", "pe_kind": kind, "pe_width": 6,
    }  # fmt: skip
    if name == "gcn-lrgb":
        del options["edge_channels"]
    return make_model(name, 9, 4, **(options | others)).double().eval()


@pytest.mark.parametrize("name", ["gine", "gatedgcn", "gps"])
def test_bonds_count(name: str) -> None:
    model, (graph, *_) = build(name, "rwse"), molecules(kind="rwse")
    before = call(model, graph)
    graph.edge_attr = (graph.edge_attr + 1) % torch.tensor(BOND_VOCABULARY)
    assert not torch.allclose(call(model, graph), before)


@EACH
def test_places_and_atoms_count(name: str) -> None:
    model, (graph, *_) = build(name, "rwse"), molecules(kind="rwse")
    before = call(model, graph)
    graph.pe = graph.pe + 1
    assert not torch.allclose(call(model, graph), before)
    graph.pe = graph.pe - 1
    graph.x = (graph.x + 1) % torch.tensor(ATOM_VOCABULARY)
    assert not torch.allclose(call(model, graph), before)


def test_gcn_has_a_table_of_bonds_that_nothing_reaches() -> None:
    model, (graph, *_) = build("gcn-lrgb", "rwse", bond_table=True), molecules(kind="rwse")
    call(model, graph).sum().backward()
    idle = {key for key, value in model.named_parameters() if value.grad is None}
    assert idle == {"bonds.weight"}
    with pytest.raises(ValueError, match="gcn-lrgb cannot use edge features"):
        build("gcn-lrgb", "rwse", edge_channels=3)


@EACH
def test_a_batch_of_graphs_without_edges_can_be_trained_on(name: str) -> None:
    model = build(name, "lappe").train()
    batch = Batch.from_data_list(molecules((1, 1, 1)))
    call(model, batch).sum().backward()
    for key, value in model.state_dict().items():
        assert bool(value.isfinite().all()), key


@EACH
def test_what_was_promised_must_be_there(name: str) -> None:
    model, (graph, *_) = build(name, "rwse"), molecules(kind="rwse")
    attr = {"edge_attr": graph.edge_attr} if model.edge_channels else {}
    with pytest.raises(ValueError, match="`pe` must have shape"):
        model(graph.x, graph.edge_index, **attr)
    with pytest.raises(ValueError, match="`pe_channels` must be the number of columns"):
        build(name, "rwse", pe_channels=0)
    if model.edge_channels:
        with pytest.raises(ValueError, match="`edge_attr` must have shape"):
            model(graph.x, graph.edge_index, pe=graph.pe)
        with pytest.raises(ValueError, match="`edge_channels` must be 3 for `encoder` 'atoms'"):
            build(name, "rwse", edge_channels=2)
    graph.x[4, 1] = 5
    with pytest.raises(ValueError, match="`x` must hold whole codes, 0 to 4 in column 1; got 5"):
        call(model, graph)


@pytest.mark.parametrize("name", ["csnn", "bunn"])
@KINDS
def test_all_of_a_sheaf_network_is_trained_on_codes_and_places(name: str, kind: str) -> None:
    more = {"num_bundles": 4, "norm": "batch"} if name == "bunn" else {"norm": "batch"}
    model = build(name, kind, edge_channels=0, readout_layers=3, **more).train()
    call(model, Batch.from_data_list(molecules(kind=kind))).square().sum().backward()
    for key, value in model.named_parameters():
        assert value.grad is not None, key
        assert value.grad.isfinite().all(), key
        assert value.grad.abs().sum() > 0 or "blocks" in key, key


def test_codes_of_atoms_are_not_dropped_as_features_are() -> None:
    with pytest.raises(ValueError, match="`input_dropout` of codes of atoms must be 0"):
        build("csnn", "rwse", input_dropout=0.2)
