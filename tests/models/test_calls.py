"""Every network is called as PyG's are, and nothing that it is given is dropped in silence."""

from __future__ import annotations

import warnings

import pytest
import torch
from graphs import generator, randn
from models.test_all import EACH_MODEL, EDGES, F_IN, OUT, N, build
from torch import Tensor, nn
from torch.testing import assert_close
from torch_geometric import EdgeIndex
from torch_geometric.explain import Explainer, Explanation, GNNExplainer
from torch_geometric.nn import GCNConv

from coopsheaf import Graph
from coopsheaf.models.registry import MODELS

M = EDGES.shape[1]
WEIGHT = (0.5 + torch.rand(M, generator=generator(2), dtype=torch.float64))[
    (EDGES[0] * EDGES[1]) % M
]  # the same both ways
TAKES_WEIGHT = pytest.mark.parametrize("name", [n for n in MODELS if MODELS[n].edge_weight])


def adj_t(values: Tensor, edges: Tensor = EDGES, layout: str = "coo") -> Tensor:
    """The transposed adjacency matrix: entry (i, j) is the edge j→i."""
    matrix = torch.sparse_coo_tensor(edges.flip(0), values, (N, N), check_invariants=True)
    with warnings.catch_warnings():  # compressed matrices are in beta, PyTorch says once
        warnings.simplefilter("ignore")
        return {
            "raw": lambda: matrix,
            "coo": matrix.coalesce,
            "csr": matrix.to_sparse_csr,
            "csc": matrix.to_sparse_csc,
        }[layout]()


LAYOUTS = pytest.mark.parametrize("layout", ["raw", "coo", "csr", "csc"])


@TAKES_WEIGHT
def test_the_third_argument_is_the_edge_weight(name: str) -> None:
    """It was ``batch``, and a network without a pool dropped the weights without a word."""
    model, x = build(name), randn(N, F_IN)
    assert torch.equal(model(x, EDGES, WEIGHT), model(x, EDGES, edge_weight=WEIGHT))
    assert not torch.allclose(model(x, EDGES, WEIGHT), model(x, EDGES))


@EACH_MODEL
def test_what_follows_the_weights_has_a_name(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    with pytest.raises(TypeError, match="positional argument"):
        model(x, EDGES, None, torch.zeros(N).long())
    with pytest.raises(ValueError, match=r"by its name: `batch=\.\.\.`"):
        model(x, EDGES, torch.zeros(N).long())


@EACH_MODEL
def test_arguments_that_nobody_needs_must_be_right_too(name: str) -> None:
    """A batch of a wrong shape or dtype passed where nothing is pooled, and so did any edge
    weight where no edge is seen."""
    model, x = build(name), randn(N, F_IN)
    for batch in (torch.zeros(N + 1).long(), torch.zeros(N)):
        with pytest.raises(ValueError, match="`batch` must be an int64 tensor of shape"):
            model(x, EDGES, batch=batch)
    with pytest.raises(ValueError, match="`batch_size` must be an integer"):
        model(x, EDGES, batch=torch.zeros(N).long(), batch_size=1.5)
    with pytest.raises(ValueError, match="`batch_size` must come with `batch`"):
        model(x, EDGES, batch_size=4)
    if model.takes_edge_weight or not model.sees_edges:
        with pytest.raises(ValueError, match=r"`edge_weight` must have shape \(m,\)"):
            model(x, EDGES, WEIGHT[1:])
        with pytest.raises(ValueError, match="`edge_weight` and `x` must have the same dtype"):
            model(x, EDGES, WEIGHT.float())


@EACH_MODEL
def test_edge_features_are_refused(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    with pytest.raises(ValueError, match=r"`edge_attr` must be None: .* give it as `edge_weight`"):
        model(x, EDGES, edge_attr=randn(M, 2))


@EACH_MODEL
@LAYOUTS
def test_a_sparse_matrix_is_its_edges(name: str, layout: str) -> None:
    model, x = build(name), randn(N, F_IN)
    ones = torch.ones(M, dtype=torch.float64)
    want = model(x, EDGES)
    assert_close(model(x, adj_t(ones, layout=layout)), want, rtol=0, atol=1e-10)
    assert_close(model(x, adj_t(ones.bool(), layout=layout)), want, rtol=0, atol=1e-10)
    matrix = adj_t(WEIGHT, layout=layout)
    if model.takes_edge_weight:
        assert_close(model(x, matrix), model(x, EDGES, WEIGHT), rtol=0, atol=1e-10)
    elif model.sees_edges:
        with pytest.raises(ValueError, match="a sparse `edge_index` one of ones"):
            model(x, matrix)


@pytest.mark.parametrize("name", ["csnn", "gcn-plain", "sage", "gt", "gin"])
def test_a_sparse_matrix_is_the_transposed_adjacency(name: str) -> None:
    one_way = EDGES[:, EDGES[0] < EDGES[1]]
    model, x, ones = build(name), randn(N, F_IN), torch.ones(one_way.shape[1]).double()
    assert_close(model(x, adj_t(ones, one_way)), model(x, one_way), rtol=0, atol=1e-10)
    assert not torch.allclose(model(x, adj_t(ones, one_way).t()), model(x, one_way))


@pytest.mark.parametrize("layout", ["raw", "coo", "csr"])
def test_a_sparse_matrix_means_what_it_means_to_pyg(layout: str) -> None:
    one_way = EDGES[:, EDGES[0] < EDGES[1]]
    weight, x = WEIGHT[: one_way.shape[1]], randn(N, F_IN)
    model = build("gcn-plain", num_layers=1)
    theirs = GCNConv(F_IN, OUT).double()
    theirs.load_state_dict(model.layers[0].state_dict())
    # PyG reads the entries of a matrix that is not coalesced as they come; here they come once.
    matrix = adj_t(weight, one_way, layout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = theirs(x, matrix)
    assert_close(model(x, adj_t(weight, one_way, layout)), want, rtol=0, atol=1e-10)
    assert_close(theirs(x, one_way, weight), want, rtol=0, atol=1e-10)


@TAKES_WEIGHT
@LAYOUTS
def test_gradients_reach_the_values_of_a_matrix(name: str, layout: str) -> None:
    model, x = build(name), randn(N, F_IN)
    for start in (WEIGHT, torch.ones_like(WEIGHT)):
        values, weight = (start.clone().requires_grad_() for _ in range(2))
        model(x, adj_t(values, layout=layout)).square().sum().backward()
        model(x, EDGES, weight).square().sum().backward()
        assert values.grad is not None
        assert_close(values.grad, weight.grad, rtol=1e-8, atol=1e-10)


@EACH_MODEL
@pytest.mark.parametrize("sort_order", [None, "row", "col"])
def test_an_edge_index_of_pyg_is_its_edges(name: str, sort_order: str | None) -> None:
    model, x = build(name), randn(N, F_IN)
    key = {None: torch.zeros(M), "row": EDGES[0], "col": EDGES[1]}[sort_order]
    order = torch.argsort(key, stable=True)
    edges = EdgeIndex(
        EDGES[:, order], sparse_size=(N, N), sort_order=sort_order, is_undirected=True
    )
    assert_close(model(x, edges), model(x, EDGES), rtol=0, atol=1e-10)
    if model.takes_edge_weight:
        want = model(x, EDGES, WEIGHT)
        assert_close(model(x, edges, WEIGHT[order]), want, rtol=0, atol=1e-10)


@EACH_MODEL
def test_bad_matrices_are_named(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    for size in ((N, N + 1), (N + 1, N + 1), (N + 1, None)):
        with pytest.raises(ValueError, match="`edge_index` must have sparse_size"):
            model(x, EdgeIndex(EDGES, sparse_size=size))
    ones = torch.ones(M, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"`edge_index` must have shape \(9, 9\)"):
        model(x, torch.sparse_coo_tensor(EDGES, ones, (N, N + 1), check_invariants=True))
    again = EDGES[:, [0, *range(M)]]
    twice = adj_t(torch.ones(M + 1), again, "raw")
    with pytest.raises(ValueError, match="two values for one entry"):
        model(x, twice)


@TAKES_WEIGHT
def test_weights_come_from_one_side(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    with pytest.raises(ValueError, match="`edge_weight` must be None where `edge_index`"):
        model(x, adj_t(WEIGHT), WEIGHT)
    ones = torch.ones_like(WEIGHT)
    with pytest.raises(ValueError, match=r"call \.coalesce"):
        model(x, adj_t(ones, layout="raw"), WEIGHT)
    row_by_row = torch.argsort(EDGES[1] * N + EDGES[0])
    want = model(x, EDGES, WEIGHT)
    assert_close(model(x, adj_t(ones), WEIGHT[row_by_row]), want, rtol=0, atol=1e-10)


def test_a_graph_has_no_place_for_weights() -> None:
    with pytest.raises(ValueError, match="a sparse matrix of ones here"):
        Graph(adj_t(WEIGHT))
    graph = Graph(adj_t(torch.ones(M)))
    assert graph.num_nodes == N
    assert set(zip(*graph.edge_index.tolist(), strict=True)) == set(
        zip(*EDGES.tolist(), strict=True)
    )


def explain(model: nn.Module, x: Tensor) -> Explanation:
    explainer = Explainer(
        model,
        algorithm=GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    return explainer(x, EDGES)


@TAKES_WEIGHT
def test_pygs_explainer_finds_edges(name: str) -> None:
    """Layers without messages got no mask: the explainer said that edges are not used."""
    torch.manual_seed(0)
    model, x = build(name).float(), randn(N, F_IN).float()
    want = model(x, EDGES)
    explanation = explain(model, x)
    assert explanation.edge_mask.shape == (M,)
    assert (explanation.edge_mask > 0).sum() > M / 2
    assert torch.equal(model(x, EDGES), want)  # the masks are gone


@TAKES_WEIGHT
def test_an_edge_mask_multiplies_the_weights(name: str) -> None:
    model, x = build(name), randn(N, F_IN)
    masks, mask = model.edge_masks, WEIGHT.clone().requires_grad_()
    masks.explain, masks._edge_mask, masks._apply_sigmoid = True, mask, False
    out = model(x, EDGES, WEIGHT)
    assert_close(out, model.train(False)(x, EDGES, WEIGHT))
    (gradient,) = torch.autograd.grad(out.square().sum(), mask)
    assert gradient.abs().sum() > 0
    masks.explain = None
    assert_close(out, model(x, EDGES, WEIGHT * WEIGHT), rtol=0, atol=1e-10)
    masks.explain, masks._edge_mask = True, mask[1:]
    with pytest.raises(ValueError, match="edge mask of an explainer must have shape"):
        model(x, EDGES)


@EACH_MODEL
def test_masks_add_nothing_to_the_parameters(name: str) -> None:
    assert not [key for key in build(name).state_dict() if "mask" in key]
