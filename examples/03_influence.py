"""Who influences whom: how far three small networks listen, and a route that carries one feature.

Run with: python examples/03_influence.py [FIGURE]
"""

import sys

import torch

from coopsheaf import CSNN, Graph
from coopsheaf.analysis import (
    adjacency_bound,
    average_by_hop,
    compare_influence,
    frozen_maps,
    hop_distances,
    influence_by_hop,
    route,
    verify_route,
)
from coopsheaf.zoo.plain.network import PlainGCN, PlainMLP

torch.manual_seed(0)

# A ring of 24 nodes with two chords, every edge both ways.
n = 24
nodes = torch.arange(n)
edges = torch.stack([nodes, (nodes + 1) % n])
edges = torch.cat([edges, torch.tensor([[0, 6], [12, 18]])], dim=1)
graph = Graph(torch.cat([edges, edges.flip(0)], dim=1), n)
x = torch.randn(n, 8)

models = {
    "mlp": PlainMLP(8, 16, 3, 4),
    "gcn": PlainGCN(8, 16, 3, 4, act="tanh"),
    "csnn": CSNN(8, 8, num_layers=3, out_channels=4, stalk_dim=2, learner="sage-node-norm"),
}
print("Influence by distance: root mean square of ‖∂ out_i / ∂ x_j‖, before any training.\n")
table = compare_influence(models, x, graph)
print(table)

# A sheaf network passes information on through the diffusion and through its map learners.
with frozen_maps(models["csnn"]):
    diffusion = influence_by_hop(models["csnn"], x, graph)
reach = int(diffusion.rms.nonzero().max())
whole = int(table.profiles["csnn"].rms.nonzero().max())
print(f"\nCSNN reaches {whole} hops in 3 layers, {reach} of them by diffusion alone.")

# On large graphs: a few targets and random signs, with an error.
rough = influence_by_hop(models["csnn"], x, graph, num_targets=12, probes=2)
print(
    f"From 12 targets and 2 random vectors each: range {rough.effective_range:.2f} "
    f"± {1.96 * rough.range_error:.2f} (exactly {table.profiles['csnn'].effective_range:.2f})."
)

# Proposition 4.3: maps that carry node 3's feature to node 9 and nothing else.
found = route(graph, 3, 9, scale=2.0)
result = verify_route(found, graph)
print(
    f"\nA route {' → '.join(map(str, found.path))}: {len(found.layers)} layers, node 3 arrives "
    f"{found.gain:.2f} times as large; of all others {result.leaked:g}."
)

bound = average_by_hop(adjacency_bound(graph, 3), hop_distances(graph))
try:
    from coopsheaf.figures import influence as figures

    drawn = figures.influence_figure(table.profiles, bound=bound)
    file = figures.save(drawn, sys.argv[1] if len(sys.argv) > 1 else "influence.svg")
    print(f"The table as a figure: {file}")
except ImportError as error:
    print(error)
