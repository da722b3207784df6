"""Links: a network that scores pairs of nodes, and the pairs that it learns from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from coopsheaf.data.dataset import PARTS
from coopsheaf.data.links import LinkDataset
from coopsheaf.data.non_edges import NonEdges
from coopsheaf.data.pack import prepared_graph
from coopsheaf.models.network import Network
from coopsheaf.sheaves.graph import Graph
from coopsheaf.train.order import derive_seed

SCORED = 1000  # training links that an evaluation scores, or as many as there are for validation
PAIRS = 1 << 15  # pairs scored at a time


class LinkDecoder(nn.Module):
    r"""From embeddings of nodes to scores of pairs, as logits.

    .. math:: s(i \to j) = \frac{\langle A z_i, B z_j \rangle}{\sqrt{c}} + b

    A and B are affine. A says what a node looks for, B what it is found by, so that a link need not
    go both ways; their constants let nodes differ in how many links they have. For an
    undirected graph B = D A with a learned diagonal D: the score is symmetric. D starts with
    ones and, at every fourth place, a minus one: with D = 1 a node would always score high with
    nodes like itself, and a graph that links unlike ones could not be learned.

    Args:
        channels: the size c of the embeddings.
        undirected: links have no direction.

    Shapes:
        z ``(n, c)``; source ``(k, t)`` or ``(k, 1)``, one for all of a row; target ``(k, t)``.
        Returns ``(k, t)``.
    """

    def __init__(self, channels: int, *, undirected: bool) -> None:
        super().__init__()
        self.channels, self.undirected = channels, undirected
        self.source = nn.Linear(channels, channels)
        self.target = None if undirected else nn.Linear(channels, channels)
        self.diagonal = nn.Parameter(torch.empty(channels)) if undirected else None
        self.bias = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.source.reset_parameters()
        if self.target is not None:
            self.target.reset_parameters()
        if self.diagonal is not None:
            nn.init.ones_(self.diagonal)
            with torch.no_grad():
                self.diagonal[::4] = -1
        nn.init.zeros_(self.bias)

    def ends(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """What every node is as a source and as a target of links, ``(n, c)`` each."""
        start = self.source(z)
        end = start * self.diagonal if self.target is None else self.target(z)
        return start / self.channels**0.5, end

    def score(self, ends: tuple[Tensor, Tensor], source: Tensor, target: Tensor) -> Tensor:
        """The scores of pairs, a bounded number of them at a time, forward and backward."""
        rows = max(1, PAIRS // target.shape[1])
        pieces = list(zip(source.split(rows), target.split(rows), strict=True))
        if len(pieces) > 1 and torch.is_grad_enabled():
            # The rows of a piece are gathered again on the way back instead of being kept.
            options: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
            scores = [checkpoint(_products, *ends, *piece, **options) for piece in pieces]
        else:
            scores = [_products(*ends, *piece) for piece in pieces]
        return torch.cat(scores) + self.bias

    def forward(self, z: Tensor, source: Tensor, target: Tensor) -> Tensor:
        return self.score(self.ends(z), source, target)

    def extra_repr(self) -> str:
        return f"channels={self.channels}, undirected={self.undirected}"


def _products(start: Tensor, end: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """⟨start_i, end_j⟩ of some pairs, ``(k, t)``."""
    # As embeddings: the derivative of plain indexing adds up row by row, and slowly.
    return (F.embedding(source, start) * F.embedding(target, end)).sum(-1)


class LinkNetwork(nn.Module):
    """A network that embeds nodes, and a decoder that scores pairs of them.

    Args:
        network: any network without a readout (``out_channels=None``).
        undirected: links have no direction.

    Called with ``source`` and ``target`` beside the network's own arguments, it gives the logits of
    these pairs; for shapes see :class:`LinkDecoder`.
    """

    def __init__(self, network: Network, *, undirected: bool) -> None:
        super().__init__()
        self.network = network
        self.decoder = LinkDecoder(network.embedding_channels, undirected=undirected)

    def map_learners(self) -> list[nn.Module]:
        return self.network.map_learners()

    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.network.parameter_groups()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Graph,
        source: Tensor,
        target: Tensor,
        *,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        z = self.network(x, edge_index, edge_weight=edge_weight)
        return self.decoder(z, source, target)


class LinkFeed:
    """The whole graph in every step; the loss is taken at all training links and at non-edges.

    For each link (i, j) a step has a non-edge (i, k), which teaches what an evaluation asks, and
    another one between any two nodes, without which nodes that no link leaves would never be seen
    as sources. They are non-edges of training alone, so that nothing says which pairs are links of
    validation and test, and drawn anew in every epoch, from the seed and the epoch.

    Logits and targets are ``(links, 1 + negatives)``, the link first in each row.
    """

    one_pass = True

    def __init__(
        self, dataset: LinkDataset, *, seed: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.x = dataset.x.to(device, dtype)
        self.graph = prepared_graph(dataset).to(device)
        weight = dataset.edge_weight
        self.edge_weight = None if weight is None else weight.to(device, dtype)
        self.seed = seed
        self.non_edges = NonEdges(dataset.train, dataset.num_nodes)
        known = self.non_edges.count[dataset.train[0]] > 0
        if not known.any():
            raise ValueError(
                f"the training links of {dataset.name} must have sources that lack an edge to some "
                "node; all have edges to all others: there is nothing to tell them from"
            )
        self.sources = self.non_edges.count.nonzero().squeeze(1)
        self.links = dataset.train[:, known]
        parts = {part: dataset.candidates(part) for part in PARTS[1:]}
        # Before the first epoch, so that an evaluation is the same in all of them.
        rng = torch.Generator().manual_seed(derive_seed(seed, -1))
        count = max(SCORED, dataset.val.shape[1])
        some = torch.randperm(self.links.shape[1], generator=rng)[:count]
        source, target = self.links[:, some].unsqueeze(-1)
        drawn = self.non_edges.draw(source[:, 0], dataset.val_negatives.shape[1], rng)
        parts["train"] = (source, torch.cat([target, drawn], dim=1))
        self.parts = {part: (s.to(device), t.to(device)) for part, (s, t) in parts.items()}

    def pairs(self, epoch: int) -> tuple[Tensor, Tensor]:
        """Sources and targets of an epoch's only step, ``(k, 1 + negatives)`` each."""
        rng = torch.Generator().manual_seed(derive_seed(self.seed, epoch))
        source, target = self.links
        place = torch.randint(len(self.sources), source.shape, generator=rng)
        others = self.sources[place]
        drawn = (self.non_edges.draw(nodes, 1, rng)[:, 0] for nodes in (source, others))
        pairs = torch.stack([source, source, others]), torch.stack([target, *drawn])
        source, target = (ends.T.to(self.x.device, non_blocking=True) for ends in pairs)
        return source, target

    def steps(self, model: nn.Module, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        logits = model(self.x, self.graph, *self.pairs(epoch), edge_weight=self.edge_weight)
        yield logits, _targets(logits)

    def outputs(
        self, model: nn.Module, parts: Sequence[str] = PARTS
    ) -> dict[str, tuple[Tensor, Tensor]]:
        assert isinstance(model, LinkNetwork)
        ends = model.decoder.ends(model.network(self.x, self.graph, self.edge_weight))
        logits = {part: model.decoder.score(ends, *self.parts[part]) for part in parts}
        return {part: (values, _targets(values)) for part, values in logits.items()}

    def evaluation_share(self, model: nn.Module, parts: Sequence[str]) -> float:
        return 1.0

    def train_targets(self) -> Tensor:
        return torch.ones(self.links.shape[1])

    def summary(self, model: nn.Module) -> None:
        return None


def _targets(logits: Tensor) -> Tensor:
    """Ones in the first column, zeros elsewhere."""
    y = torch.zeros_like(logits.detach())
    y[:, 0] = 1
    return y
