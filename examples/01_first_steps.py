"""First steps: a small CSNN on a generated graph, and a look at who listens to whom.

Run with: python examples/01_first_steps.py
"""

import time

import torch

from coopsheaf import CSNN, FlatSheaf, Graph, in_laplacian, out_laplacian, record_maps

torch.manual_seed(0)

# A graph in which neighbours differ: 1,000 nodes of two classes, each joined to a few nodes, nine
# in ten of the *other* class. PyG's convention: edge_index[0] sends to edge_index[1].
n = 1000
labels = torch.randint(0, 2, (n,))
source, target = torch.randint(0, n, (2, 20 * n))
keep = (labels[source] != labels[target]) | (torch.rand(source.numel()) < 0.1)
edges = torch.stack([source[keep], target[keep]])[:, : 4 * n]
edge_index = torch.cat([edges, edges.flip(0)], dim=1)
x = torch.randn(n, 8)
x[:, 0] += 0.7 * (2 * labels - 1)  # a weak hint of the class
train = torch.rand(n) < 0.5
different = (labels[edge_index[0]] != labels[edge_index[1]]).float().mean()
print(
    f"A graph of {n:,} nodes and {edge_index.shape[1]:,} directed edges; "
    f"{different:.0%} join different classes."
)

# Sort the edges once; pass the graph wherever an edge_index goes.
graph = Graph(edge_index, n)
model = CSNN(8, 16, num_layers=2, out_channels=2, stalk_dim=3, learner="mlp", scale="rectified")
parameters = sum(parameter.numel() for parameter in model.parameters())
print(f"{model}\n{parameters:,} parameters")

optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
start = time.perf_counter()
for step in range(60):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x, graph)[train], labels[train])
    loss.backward()
    optimizer.step()
    if step % 20 == 0 or step == 59:
        with torch.no_grad():
            correct = (model(x, graph).argmax(1) == labels)[~train].float().mean()
        print(f"step {step:3d}   loss {loss.item():.3f}   held-out accuracy {correct:.1%}")
seconds = time.perf_counter() - start
print(f"60 training steps (forward, backward, Adam) in {seconds:.1f} s")

# The learned maps can be had without changing what forward returns.
with torch.no_grad(), record_maps(model) as maps:
    model(x, graph)
print("\nWho takes part, layer by layer (scales exactly zero are silence):")
for number, layer in enumerate(maps):
    listens, speaks = layer.target.scale > 0, layer.source.scale > 0
    print(
        f"  layer {number}:  STANDARD {(listens & speaks).sum():4d}   "
        f"LISTEN {(listens & ~speaks).sum():4d}   PROPAGATE {(~listens & speaks).sum():4d}   "
        f"ISOLATE {(~listens & ~speaks).sum():4d}"
    )

# The same maps as a sheaf, and the layer's diffusion as an operator.
sheaf = FlatSheaf(graph, maps[0].source, maps[0].target)
operator = in_laplacian(sheaf, "augmented").T @ out_laplacian(sheaf, "augmented")
features = torch.randn(n, 3, 1)
before, after = features.norm(), (operator @ features).norm()
print(f"\n{sheaf}\nΔ_inᵀ Δ_out takes features of norm {before:.1f} to norm {after:.1f}.")
