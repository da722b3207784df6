"""What the authors' released code computes, written down from its description, edge by edge.

Slow and plain, with PyG's own GraphSAGE as learner: an independent second opinion for
``semantics="released"`` and for reading its checkpoints.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import (
    GraphSAGE,
    SAGEConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)

ACTS = {
    "gelu": F.gelu,
    "relu": F.relu,
    "tanh": torch.tanh,
    "elu": F.elu,
    "sigmoid": torch.sigmoid,
    "id": lambda x: x,
}
POOLS = {"mean": global_mean_pool, "add": global_add_pool, "max": global_max_pool}


def orthogonal(kind: str, p: Tensor, d: int) -> Tensor:
    """Built matrix by matrix from the definitions."""
    eye = torch.eye(d, dtype=p.dtype)
    if kind == "euler":
        c, s = torch.cos(2 * math.pi * p), torch.sin(2 * math.pi * p)
        zero, one = torch.zeros_like(c[:, 0]), torch.ones_like(c[:, 0])

        def matrix(rows: list[list[Tensor]]) -> Tensor:
            return torch.stack([torch.stack(row, -1) for row in rows], -2)

        if d == 2:
            return matrix([[c[:, 0], -s[:, 0]], [s[:, 0], c[:, 0]]])
        z = matrix([[c[:, 0], -s[:, 0], zero], [s[:, 0], c[:, 0], zero], [zero, zero, one]])
        y = matrix([[c[:, 1], zero, s[:, 1]], [zero, one, zero], [-s[:, 1], zero, c[:, 1]]])
        x = matrix([[one, zero, zero], [zero, c[:, 2], -s[:, 2]], [zero, s[:, 2], c[:, 2]]])
        return z @ y @ x
    offset = -1 if kind == "householder" else 0
    rows, columns = torch.tril_indices(d, d, offset)
    lower = p.new_zeros(p.shape[0], d, d)
    lower[:, rows, columns] = p
    if kind == "householder":
        result = eye.expand(p.shape[0], d, d)
        for k in range(d):
            v = lower[:, :, k] + eye[k]
            reflection = eye - 2 * v[:, :, None] * v[:, None, :] / (v * v).sum(-1)[:, None, None]
            result = result @ reflection
        return result
    skew = lower - lower.mT
    if kind == "cayley":
        return torch.linalg.inv(eye - skew / 2) @ (eye + skew / 2)
    return torch.matrix_exp(skew)


class Learner(nn.Module):
    def __init__(self, width: int, options: dict, outputs: int) -> None:
        super().__init__()
        hidden, layers = options["gnn_hidden"], options["gnn_layers"]
        self.kind = "mlp" if layers == 0 else options["gnn_default"]
        self.residual = options["gnn_residual"]
        if self.kind == "mlp":
            self.phi: nn.Module = nn.Sequential(
                nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
            )
        elif self.kind == 1:
            self.phi = GraphSAGE(width, hidden, layers, outputs, norm="layer")
        elif self.kind == 2:
            self.phi = GraphSAGE(
                width, hidden, layers, outputs, dropout=0.2, act="gelu", project=True
            )
        else:
            self.emb1 = nn.Linear(width, hidden)
            self.phi = nn.ModuleList(SAGEConv(hidden, hidden) for _ in range(layers))
            self.emb2 = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.kind == "mlp":
            return self.phi(x)
        if self.kind in (1, 2):
            return self.phi(x, edge_index)
        x = F.gelu(self.emb1(x))
        for conv in self.phi:
            y = F.gelu(conv(x, edge_index))
            x = x + y if self.residual else y
        return self.emb2(x)


class Conv(nn.Module):
    def __init__(self, h: int, d: int, options: dict) -> None:
        super().__init__()
        self.h, self.d, self.options = h, d, options
        if options["left_weights"]:
            self.lin_left_weights = nn.Linear(d, d, bias=False)
        if options["right_weights"]:
            self.lin_right_weights = nn.Linear(h, h, bias=False)
        wide = options["orth_trans"] in ("cayley", "matrix_exp")
        outputs = d * (d + 1) // 2 if wide else d * (d - 1) // 2
        outputs += 1 if options["conformal"] else 0
        width = h * d + options["pe_size"]
        self.in_maps_learner = Learner(width, options, outputs)
        self.out_maps_learner = Learner(width, options, outputs)

    def maps(self, learner: Learner, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        raw = learner(x, edge_index)
        if self.options["conformal"]:
            raw, scale = raw[:, :-1], raw[:, -1].clamp(max=math.log(10)).exp()
        else:
            scale = raw.new_ones(raw.shape[0])
        q = orthogonal(self.options["orth_trans"], torch.tanh(raw), self.d)
        return scale, scale[:, None, None] * q

    def forward(self, x: Tensor, edge_index: Tensor, pe: Tensor | None) -> Tensor:
        n = x.shape[0]
        flat = x.reshape(n, -1)
        if pe is not None:
            flat = torch.cat([flat, pe], dim=1)
        s, source = self.maps(self.in_maps_learner, flat, edge_index)
        t, target = self.maps(self.out_maps_learner, flat, edge_index)
        if self.options["left_weights"]:
            x = torch.einsum("ab,nbh->nah", self.lin_left_weights.weight, x)
        if self.options["right_weights"]:
            x = torch.einsum("gh,ndh->ndg", self.lin_right_weights.weight, x)
        row, column = edge_index
        row_degree = torch.bincount(row, minlength=n)
        column_degree = torch.bincount(column, minlength=n)
        for degree, scale in ((row_degree, t), (column_degree, s)):
            norm = degree * scale**2 + 1
            y = torch.zeros_like(x)
            for i, j in zip(row.tolist(), column.tolist(), strict=True):
                own = scale[i] ** 2 / norm[i] * x[i]
                other = target[i].T @ source[j] @ x[j] / (norm[i] * norm[j]).sqrt()
                y = y.index_add(0, torch.tensor([i]), (own - other)[None])
            x = y
        return x


class ReleasedCSNN(nn.Module):
    def __init__(self, f: int, h: int, layers: int, out: int, **options: object) -> None:
        super().__init__()
        defaults: dict = {
            "stalk_dimension": 2, "act": "gelu", "pe_size": 0, "num_heads": 1, "norm": "none",
            "graph_level": False, "pooling": "mean", "left_weights": True, "right_weights": True,
            "orth_trans": "householder", "gnn_layers": 1, "gnn_hidden": 32, "gnn_default": 0,
            "gnn_residual": False, "conformal": True,
        }  # fmt: skip
        self.options = {**defaults, **options}
        self.d, self.h = self.options["stalk_dimension"], h
        width = self.d * h
        self.lin1 = nn.Linear(f, width)
        self.coop_layers = nn.ModuleList(Conv(h, self.d, self.options) for _ in range(layers))
        self.epsilons = nn.ParameterList(torch.zeros(self.d, 1) for _ in range(layers))
        if self.options["norm"] != "none":
            norm = nn.LayerNorm if self.options["norm"] == "LayerNorm" else nn.BatchNorm1d
            self.norms = nn.ModuleList(norm(width) for _ in range(layers))
        hidden: list[nn.Module] = []
        for _ in range(self.options["num_heads"] - 1):
            hidden += [nn.Linear(width, width), nn.GELU()]
        self.mlp = nn.Sequential(*hidden, nn.Linear(width, out))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        pe: Tensor | None = None,
    ) -> Tensor:
        n, act = x.shape[0], ACTS[self.options["act"]]
        x = act(self.lin1(x)).reshape(n, self.d, self.h)
        for k, conv in enumerate(self.coop_layers):
            x = (1 + torch.tanh(self.epsilons[k])) * x - act(conv(x, edge_index, pe))
            if self.options["norm"] != "none":
                x = self.norms[k](x.reshape(n, -1)).reshape(n, self.d, self.h)
        x = x.reshape(n, -1)
        if self.options["graph_level"]:
            x = POOLS[self.options["pooling"]](x, batch)
        return self.mlp(x)
