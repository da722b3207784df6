r"""Heat kernels of a graph: :math:`e^{-\tau L}` with L the normalised Laplacian, and substitutes.

All are called alike: ``heat(g, graph, batch, edge_weight)`` with g of shape ``(n, B, c)``, whose B
groups of c channels may have times τ of their own. Nodes without edges have :math:`L_{ii} = 1`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from coopsheaf.checks import check_choice, check_int
from coopsheaf.sheaves.graph import Graph
from coopsheaf.sheaves.kernels.sparse import sparse_product
from coopsheaf.zoo.platonov.layers import weighted_degree

# The largest graph whose Laplacian is decomposed as a dense matrix.
MAX_DENSE_NODES = 20_000

NORMALIZATIONS = {"symmetric": "D^-½ A D^-½", "random-walk": "D^-1 A"}
TAU_INITS = {
    "uniform": "uniform in [τ - ½, τ + ½]",
    "linear": "τ b/B for b = 1, …, B",
    "multiscale": "10^(b - B/2) for b = 0, …, B - 1",
}


class Heat(nn.Module):
    """Something that spreads ``(n, B, c)`` features over a graph."""

    def reset_parameters(self) -> None:
        """Draw the parameters anew, where there are any."""

    def forward(
        self,
        g: Tensor,
        graph: Graph,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        raise NotImplementedError


class TaylorHeat(Heat):
    r"""The heat kernel's Taylor polynomial, by sparse products.

    .. math:: z = \sum_{k=0}^K \frac{(-\tau)^k}{k!} L^k g, \qquad L = I - \hat A, \qquad
              p_0 = g, \quad p_k = \frac{\tau}{k} (\hat A p_{k-1} - p_{k-1}), \quad z = \sum_k p_k

    with :math:`\hat A = D_{in}^{-1/2} A D_{out}^{-1/2}`, node-wise
    :math:`(\hat A p)_i = \sum_{j \to i} w_{ji}\, p_j / \sqrt{d^{in}_i d^{out}_j}`, or
    :math:`\hat A = D_{in}^{-1} A`. For undirected graphs the two degrees are one, and the first is
    the usual symmetric normalisation; edges that are there one way only carry heat that way only.
    No loops are added. Not the exact kernel: for few steps and a large τ the polynomial can take
    values outside [0, 1].

    Args:
        num_steps: the degree K of the polynomial.
        tau: the time τ.
        normalization: ``"symmetric"`` or ``"random-walk"``.

    Shapes:
        g ``(n, B, c)``; graph of n nodes; edge_weight ``(m,)``. Returns ``(n, B, c)``.
    """

    def __init__(self, num_steps: int, tau: float, *, normalization: str = "symmetric") -> None:
        super().__init__()
        self.num_steps = check_int("num_steps", num_steps, minimum=0)
        self.tau = check_tau(tau)
        check_choice("normalization", normalization, NORMALIZATIONS)
        self.normalization = normalization

    def forward(
        self,
        g: Tensor,
        graph: Graph,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        heard = _inverse(weighted_degree(graph, g, edge_weight))
        blocks = None if edge_weight is None else edge_weight.view(-1, 1, 1)
        flat = g.flatten(1).unsqueeze(1)  # (n, 1, B·c)
        if self.normalization == "random-walk":
            return self._polynomial(flat, heard, graph, blocks).view_as(g)
        # In q = D_out^-½ p, one scaling per step is enough; p would need two.
        sent = _inverse(weighted_degree(graph.reverse(), g, edge_weight)).sqrt().view(-1, 1, 1)
        z = self._polynomial(sent * flat, heard.sqrt() * sent.flatten(), graph, blocks)
        return (z / sent).view_as(g)

    def _polynomial(self, q: Tensor, scale: Tensor, graph: Graph, blocks: Tensor | None) -> Tensor:
        scale, z = scale.view(-1, 1, 1), q
        for k in range(1, self.num_steps + 1):
            q = (self.tau / k) * (scale * sparse_product(q, graph, blocks) - q)
            z = z + q
        return z

    def __repr__(self) -> str:
        return f"TaylorHeat({self.num_steps}, tau={self.tau}, normalization={self.normalization!r})"


class SpectralHeat(Heat):
    r"""The heat kernel on the smoothest eigenvectors, with a learned time for each bundle.

    .. math:: z = U e^{-\Lambda \tau_b} U^\top g \text{ in bundle } b, \qquad
              I - D^{-1/2} A D^{-1/2} = U \Lambda U^\top

    with the ``num_eigenpairs`` smallest eigenvalues of each graph of a batch, in double precision.
    What is orthogonal to their eigenvectors is lost; where the cut falls between equal eigenvalues,
    which eigenvectors are kept is arbitrary. The learned times pass through ReLU.

    The graph must hold every edge both ways, with one weight. A prepared
    :class:`~coopsheaf.Graph` keeps its eigenpairs, unless there are weights or a batch. No gradient
    reaches the edge weights. The matrices are dense: a graph of 20,000 nodes, the most that is
    allowed, takes 3.2 GB and as much again to decompose.

    Args:
        num_bundles: number B of bundles.
        tau: where the times start, see ``tau_init``.
        num_eigenpairs: how many eigenpairs to keep; all of them in smaller graphs.
        tau_init: ``"uniform"`` in [τ - ½, τ + ½], ``"linear"`` τ b/B for b = 1, …, B, or
            ``"multiscale"`` 10^(b - B/2) for b = 0, …, B - 1, whatever τ is.

    Shapes:
        g ``(n, B, c)``; graph of n nodes; batch ``(n,)``; edge_weight ``(m,)``. Returns
        ``(n, B, c)``.
    """

    def __init__(
        self,
        num_bundles: int,
        tau: float = 1.0,
        *,
        num_eigenpairs: int = 500,
        tau_init: str = "uniform",
    ) -> None:
        super().__init__()
        self.num_bundles = check_int("num_bundles", num_bundles, minimum=1)
        self.num_eigenpairs = check_int("num_eigenpairs", num_eigenpairs, minimum=1)
        self.start = check_tau(tau)
        check_choice("tau_init", tau_init, TAU_INITS)
        if tau_init == "multiscale" and num_bundles > 64:
            raise ValueError(
                "`num_bundles` must be at most 64 for multiscale times, which leave single "
                f"precision above that; got {num_bundles}"
            )
        self.tau_init = tau_init
        self.tau = nn.Parameter(torch.empty(num_bundles))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bundles = torch.arange(self.num_bundles, dtype=torch.float64)
        if self.tau_init == "uniform":
            nn.init.uniform_(self.tau, self.start - 0.5, self.start + 0.5)
        elif self.tau_init == "linear":
            self._set((bundles + 1) * (self.start / self.num_bundles))
        else:
            self._set(10.0 ** (bundles - self.num_bundles / 2))

    def _set(self, values: Tensor) -> None:
        with torch.no_grad():
            self.tau.copy_(values)

    def forward(
        self,
        g: Tensor,
        graph: Graph,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        tau = torch.relu(self.tau)  # (B,)
        if batch is None:
            values, vectors = self.eigenpairs(graph, edge_weight)
            dense = g.unsqueeze(0)  # (1, n, B, c)
        else:
            place, shape = _places(batch)
            values, vectors = _eigenpairs(graph, self.num_eigenpairs, edge_weight, place, shape)
            dense = g.new_zeros(*shape, *g.shape[1:]).index_put(place, g)  # (graphs, N, B, c)
        values, vectors = values.to(g.dtype), vectors.to(g.dtype)  # (graphs, K), (graphs, N, K)
        decay = torch.exp(-values.unsqueeze(-1) * tau).unsqueeze(-1)  # (graphs, K, B, 1)
        modes = (vectors.mT @ dense.flatten(2)).unflatten(2, g.shape[1:])  # (graphs, K, B, c)
        z = (vectors @ (decay * modes).flatten(2)).unflatten(2, g.shape[1:])
        return z.squeeze(0) if batch is None else z[place]

    def eigenpairs(self, graph: Graph, edge_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Eigenvalues ``(1, K)`` and eigenvectors ``(1, n, K)`` of one graph."""
        n, count = graph.num_nodes, self.num_eigenpairs

        def make(graph: Graph) -> tuple[Tensor, Tensor]:
            nodes = torch.arange(n, device=graph.device)
            place = (torch.zeros_like(nodes), nodes)
            return _eigenpairs(graph, count, edge_weight, place, (1, n))

        if edge_weight is not None:
            return make(graph)
        return graph.remember(f"{count} eigenpairs of the normalised Laplacian", make)

    def __repr__(self) -> str:
        return (
            f"SpectralHeat({self.num_bundles}, tau={self.start}, "
            f"num_eigenpairs={self.num_eigenpairs}, tau_init={self.tau_init!r})"
        )


class LimitHeat(Heat):
    r"""What is left after infinite time, on connected graphs.

    .. math:: z_i = u_i \frac{\sum_j u_j g_j}{\sum_j u_j^2}

    over the nodes j of the graph of i, with :math:`u = 1`, the mean over the graph, or
    :math:`u_i = \sqrt{d_i}`, the limit of the symmetric kernel. Only the latter sees edges.

    Args:
        by_degree: :math:`u_i = \sqrt{d_i}` with the in-degree d.

    Shapes:
        g ``(n, B, c)``; graph of n nodes; batch ``(n,)``; edge_weight ``(m,)``. Returns
        ``(n, B, c)``.
    """

    def __init__(self, *, by_degree: bool = False) -> None:
        super().__init__()
        self.by_degree = by_degree

    def forward(
        self,
        g: Tensor,
        graph: Graph,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        flat = g.flatten(1)
        degree = weighted_degree(graph, g, edge_weight).unsqueeze(-1)  # (n, 1)
        # The square root of 0 has no derivative, and isolated nodes take no part.
        alone = degree <= 0
        u = torch.where(alone, 1.0, degree).sqrt().masked_fill(alone, 0.0)
        if not self.by_degree:
            u = torch.ones_like(degree)
        total, square = global_add_pool(u * flat, batch), global_add_pool(u * u, batch)
        mean = total / torch.where(square > 0, square, 1.0)  # (graphs, B·c)
        return (u * (mean if batch is None else mean[batch])).view_as(g)

    def __repr__(self) -> str:
        return f"LimitHeat(by_degree={self.by_degree})"


def check_tau(tau: float) -> float:
    """A time: finite and not negative."""
    if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 <= tau < float("inf"):
        raise ValueError(f"`tau` must be a finite number of at least 0; got {tau!r}")
    return float(tau)


def _inverse(degree: Tensor) -> Tensor:
    """1/d, and 1 where d is 0: such a node has no entries that it could scale."""
    return 1 / torch.where(degree > 0, degree, 1.0)


def _places(batch: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    """Where each node goes, (graph, position in it), and (graphs, size of the largest)."""
    count = torch.bincount(batch)
    order = torch.argsort(batch, stable=True)
    start = count.cumsum(0) - count
    position = torch.empty_like(order)
    position[order] = torch.arange(order.numel(), device=batch.device) - start[batch[order]]
    return (batch, position), (count.numel(), int(count.max()))


def _eigenpairs(
    graph: Graph,
    count: int,
    edge_weight: Tensor | None,
    place: tuple[Tensor, Tensor],
    shape: tuple[int, int],
) -> tuple[Tensor, Tensor]:
    """The smallest eigenpairs of the normalised Laplacians of the graphs of a batch.

    Places that no node takes get zeros for eigenvectors.
    """
    size = shape[1]
    if size > MAX_DENSE_NODES:
        raise ValueError(
            f"`edge_index` must have at most {MAX_DENSE_NODES} nodes for a dense "
            f"eigendecomposition (the Taylor heat kernel has no limit); got {size}"
        )
    partner = graph.partners()  # raises for edges that are there one way only
    weight = torch.ones(graph.num_edges, dtype=torch.float64, device=graph.device)
    if edge_weight is not None:
        weight = edge_weight.detach().double()
        if not torch.compiler.is_compiling() and not torch.equal(weight, weight[partner]):
            raise ValueError("`edge_weight` must be the same both ways for a spectral heat kernel")
    with torch.no_grad():
        scale = _inverse(weighted_degree(graph, weight, weight)).sqrt()
        entries = -weight * scale[graph.source] * scale[graph.target]
        number, position = place
        # Empty places get an eigenvalue above all others, which are at most 2.
        diagonal = torch.full(shape, 3.0, dtype=torch.float64, device=graph.device)
        diagonal = diagonal.index_put(place, diagonal.new_ones(()))
        at = (number[graph.target], position[graph.target], position[graph.source])
        matrix = torch.diag_embed(diagonal).index_put(at, entries, accumulate=True)
        values, vectors = torch.linalg.eigh(matrix)
        values, vectors = values[:, :count], vectors[:, :, :count]
        # Rounding must not make a long time kill, or blow up, what is harmonic.
        tiny = 4 * size * torch.finfo(torch.float64).eps
        empty = values > 2.5
        values = values.masked_fill((values < tiny) | empty, 0.0)
        return values, vectors.masked_fill(empty.unsqueeze(1), 0.0)
