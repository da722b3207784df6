"""The sheaf convolution of a sheaf that is known, not learned."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.sheaves.laplacian import sheaf_laplacian
from coopsheaf.sheaves.operator import Identity, Operator
from coopsheaf.sheaves.sheaf import Sheaf
from coopsheaf.tensor_checks import check_shape


def sheaf_diffusion(sheaf: Sheaf, normalization: str | None = "augmented") -> Operator:
    r"""The diffusion operator :math:`I - \Delta` of a sheaf of one's own.

    Args:
        sheaf: an undirected sheaf.
        normalization: ``"augmented"``; ``"plain"``, that of the paper; or ``None``.
    """
    laplacian = sheaf_laplacian(sheaf, normalization)
    maps = sheaf.maps
    return Identity(*laplacian.domain, dtype=maps.dtype, device=maps.device) - laplacian


class FixedSheafConv(nn.Module):
    r"""The sheaf convolution of Hansen & Gebhart (2020), for any diffusion operator.

    .. math:: Y = \rho\bigl(D_F (I_n \otimes B) X A\bigr), \qquad D_F = I - \Delta

    Node by node :math:`y_i = \rho(\sum_j (D_F)_{ij} B x_j A)`. With the trivial sheaf on stalks of
    dimension 1 and the augmented Δ this is the layer of a GCN. There are no biases. The paper's
    :math:`\Delta = D^{-1/2} L D^{-1/2}` is not augmented.

    Args:
        in_channels: number of input channels.
        out_channels: number of output channels.
        stalk_dim: dimension d of the stalks.
        left_weights: learn B, ``(d, d)``; it starts as the identity.
        act: ρ; none if not given.

    Shapes:
        x ``(n, d, in_channels)``; operator on n nodes with stalks of dimension d, such as
        :func:`sheaf_diffusion` gives. Returns ``(n, d, out_channels)``.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        stalk_dim: int,
        *,
        left_weights: bool = True,
        act: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.in_channels = check_int("in_channels", in_channels, minimum=1)
        self.out_channels = check_int("out_channels", out_channels, minimum=1)
        self.stalk_dim = check_int("stalk_dim", stalk_dim, minimum=1)
        self.act = nn.Identity() if act is None else act
        # Parameters are kept as Linear's transposed weights: B itself, and Aᵀ.
        self.left = nn.Linear(stalk_dim, stalk_dim, bias=False) if left_weights else None
        self.right = nn.Linear(in_channels, out_channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """B starts as the identity, A as Glorot & Bengio (2010) draw it."""
        if self.left is not None:
            nn.init.eye_(self.left.weight)
        nn.init.xavier_uniform_(self.right.weight)

    def forward(self, x: Tensor, operator: Operator) -> Tensor:
        d, h = self.stalk_dim, self.in_channels
        check_shape("x", x, f"(n, {d}, {h})", (None, d, h))
        if not isinstance(operator, Operator) or operator.domain != tuple(x.shape[:2]):
            raise ValueError(
                f"`operator` must be an Operator on {x.shape[0]} nodes with stalks of dimension "
                f"{d}; got {operator}"
            )
        if self.left is not None:
            x = self.left.weight @ x
        # A commutes with the operator: it acts where rows are shorter.
        if self.out_channels < self.in_channels:
            return self.act(operator.mv(self.right(x)))
        return self.act(self.right(operator.mv(x)))

    def __repr__(self) -> str:
        return (
            f"FixedSheafConv({self.in_channels}, {self.out_channels}, stalk_dim={self.stalk_dim})"
        )
