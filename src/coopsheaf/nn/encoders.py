"""What makes features of molecules and of places in a graph: codes of atoms and of bonds, random
walks that return, eigenvectors of the Laplacian."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from coopsheaf.checks import check_int
from coopsheaf.tensor_checks import check_shape

# How many codes each column of the Open Graph Benchmark's molecules has.
ATOM_VOCABULARY = (119, 5, 12, 12, 10, 6, 6, 2, 2)
BOND_VOCABULARY = (5, 6, 2)


class CodeEncoder(nn.Module):
    r"""One learned vector per code of each column, summed over the columns.

    .. math:: y_i = \sum_c E^{(c)}_{x_{ic}}

    The tables :math:`E^{(c)}` stand on top of one another in ``weight``, and the sum is one product
    with the matrix of zeros and ones that says which codes a row has.

    Args:
        vocabulary: how many codes each column has.
        width: size of the vectors.
        argument: what errors call the codes.

    Shapes:
        codes ``(n, columns)``, integers or whole floating point numbers. Returns ``(n, width)``.
    """

    def __init__(self, vocabulary: tuple[int, ...], width: int, *, argument: str = "codes") -> None:
        super().__init__()
        self.vocabulary, self.argument = tuple(vocabulary), argument
        self.width = check_int("width", width, minimum=1)
        ends = [0]
        for size in self.vocabulary:
            ends.append(ends[-1] + check_int("vocabulary", size, minimum=1))
        self.ends = tuple(ends)
        self.weight = nn.Parameter(torch.empty(ends[-1], width))
        # Not stored: they follow from the vocabulary.
        self.register_buffer("first", torch.tensor(ends[:-1]), persistent=False)
        self.reset_parameters()

    first: Tensor

    def reset_parameters(self) -> None:
        """Draw every table by itself, uniformly after Xavier."""
        for start, end in pairwise(self.ends):
            bound = (6 / (end - start + self.width)) ** 0.5
            nn.init.uniform_(self.weight[start:end], -bound, bound)

    def forward(self, codes: Tensor) -> Tensor:
        places = check_codes(self.argument, codes, self.vocabulary) + self.first
        hot = self.weight.new_zeros(places.shape[0], self.ends[-1])
        return hot.scatter(1, places, 1.0) @ self.weight

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.width})"


class AtomEncoder(CodeEncoder):
    """Nine codes of an atom as one vector: :class:`CodeEncoder` of ``ATOM_VOCABULARY``.

    Args:
        width: size of the vectors.

    Shapes:
        codes ``(n, 9)``. Returns ``(n, width)``.
    """

    columns: ClassVar[int] = len(ATOM_VOCABULARY)

    def __init__(self, width: int) -> None:
        super().__init__(ATOM_VOCABULARY, width, argument="x")


class BondEncoder(CodeEncoder):
    """Three codes of a bond as one vector: :class:`CodeEncoder` of ``BOND_VOCABULARY``.

    Args:
        width: size of the vectors.

    Shapes:
        codes ``(m, 3)``. Returns ``(m, width)``.
    """

    columns: ClassVar[int] = len(BOND_VOCABULARY)

    def __init__(self, width: int) -> None:
        super().__init__(BOND_VOCABULARY, width, argument="edge_attr")


class RWSEEncoder(nn.Module):
    """How likely random walks return (RWSE), normalised over the batch, through a linear layer.

    Args:
        steps: number of lengths of walks.
        width: size of the output.

    Shapes:
        pe ``(n, steps)``. Returns ``(n, width)``.
    """

    def __init__(self, steps: int, width: int) -> None:
        super().__init__()
        self.steps = check_int("steps", steps, minimum=1)
        self.width = check_int("width", width, minimum=1)
        self.norm, self.linear = nn.BatchNorm1d(steps), nn.Linear(steps, width)

    def reset_parameters(self) -> None:
        self.norm.reset_parameters()
        self.linear.reset_parameters()

    def forward(self, pe: Tensor) -> Tensor:
        pe = check_shape("pe", pe, f"(n, {self.steps})", (None, self.steps))
        return self.linear(self.norm(pe.to(self.linear.weight.dtype)))

    def __repr__(self) -> str:
        return f"RWSEEncoder({self.steps}, {self.width})"


class LapPEEncoder(nn.Module):
    r"""Eigenvectors of the Laplacian (LapPE): a perceptron of every pair of entry and eigenvalue.

    .. math:: y_i = \sum_{k} s_k(i)\, \phi([\pm_k v_{k,i},\; \lambda_k]), \qquad
              \phi = \mathrm{ReLU} \circ \mathrm{Linear} \circ \mathrm{ReLU} \circ \mathrm{Linear}

    An eigenvector is known up to its sign: in training one sign :math:`\pm_k` per frequency is
    drawn for the whole batch. Frequencies that a graph is too small to have are NaN; they do not
    count (:math:`s_k(i) = 0`).

    Args:
        frequencies: number k of eigenpairs.
        width: size of the output; the perceptron is twice as wide inside.

    Shapes:
        pe ``(n, 2 · frequencies)``: the entries of the eigenvectors at a node, then the
        eigenvalues. Returns ``(n, width)``.
    """

    def __init__(self, frequencies: int, width: int) -> None:
        super().__init__()
        self.frequencies = check_int("frequencies", frequencies, minimum=1)
        self.width = check_int("width", width, minimum=1)
        self.inner, self.outer = nn.Linear(2, 2 * width), nn.Linear(2 * width, width)

    def reset_parameters(self) -> None:
        self.inner.reset_parameters()
        self.outer.reset_parameters()

    def forward(self, pe: Tensor) -> Tensor:
        count = self.frequencies
        pe = check_shape("pe", pe, f"(n, {2 * count})", (None, 2 * count))
        pairs = pe.to(self.inner.weight.dtype).unflatten(1, (2, count)).mT  # (n, k, 2)
        missing = pairs.isnan().any(-1, keepdim=True)
        pairs = torch.where(missing, 0.0, pairs) * self._signs(pairs)
        y = self.outer(self.inner(pairs).relu()).relu()  # (n, k, width)
        return torch.where(missing, 0.0, y).sum(1)

    def _signs(self, pairs: Tensor) -> Tensor:
        """``(k, 2)``: one sign per eigenvector, and 1 for its eigenvalue."""
        signs = pairs.new_ones(self.frequencies, 2)
        if self.training:
            signs[:, 0] = torch.rand_like(signs[:, 0]).ge(0.5).to(signs.dtype) * 2 - 1
        return signs

    def __repr__(self) -> str:
        return f"LapPEEncoder({self.frequencies}, {self.width})"


def check_codes(argument: str, codes: Tensor, vocabulary: tuple[int, ...]) -> Tensor:
    """Codes as ``(n, columns)`` integers, each inside of its column's vocabulary."""
    columns = len(vocabulary)
    if codes.dim() != 2 or codes.shape[1] != columns:
        raise ValueError(
            f"`{argument}` must have shape (n, {columns}), one code per column; "
            f"got {tuple(codes.shape)}"
        )
    whole = codes.long()
    # Not where a step would wait for the device, nor in a program that is only traced.
    if codes.is_cpu and not torch.compiler.is_compiling():
        limits = torch.tensor(vocabulary, device=codes.device)
        wrong = (whole != codes) | (whole < 0) | (whole >= limits)
        if bool(wrong.any()):
            row, column = (int(place) for place in wrong.nonzero()[0])
            raise ValueError(
                f"`{argument}` must hold whole codes, 0 to {vocabulary[column] - 1} in column "
                f"{column}; got {codes[row, column].item():g} in row {row}"
            )
    return whole
