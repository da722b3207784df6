"""Encoders of codes and of places against tables looked up one by one."""

from __future__ import annotations

import pytest
import torch
from graphs import generator, randn
from torch import Tensor
from torch.testing import assert_close

from coopsheaf.nn import AtomEncoder, BondEncoder, LapPEEncoder, RWSEEncoder
from coopsheaf.nn.encoders import ATOM_VOCABULARY, BOND_VOCABULARY, CodeEncoder

KINDS = pytest.mark.parametrize(
    ("encoder", "vocabulary"), [(AtomEncoder, ATOM_VOCABULARY), (BondEncoder, BOND_VOCABULARY)]
)


def draw_codes(vocabulary: tuple[int, ...], n: int = 12) -> Tensor:
    rng = generator(0)
    columns = [torch.randint(0, size, (n,), generator=rng) for size in vocabulary]
    codes = torch.stack(columns, dim=1)
    codes[0], codes[1] = torch.tensor(vocabulary) - 1, 0  # the last and the first of each
    return codes


@KINDS
def test_codes_are_sums_of_rows_of_their_tables(
    encoder: type[AtomEncoder], vocabulary: tuple[int, ...]
) -> None:
    torch.manual_seed(0)
    module, codes = encoder(7).double(), draw_codes(vocabulary)
    tables = module.weight.split(vocabulary)
    want = sum(table[codes[:, k]] for k, table in enumerate(tables))
    assert_close(module(codes), want, rtol=0, atol=1e-14)
    assert torch.equal(module(codes.double()), module(codes))
    (grad,) = torch.autograd.grad(module(codes).square().sum(), module.weight)
    (slow,) = torch.autograd.grad(want.square().sum(), module.weight)
    assert_close(grad, slow, rtol=0, atol=1e-12)
    assert sum(p.numel() for p in module.parameters()) == sum(vocabulary) * 7
    assert list(module.state_dict()) == ["weight"]
    assert repr(module) == f"{encoder.__name__}(7)"


def test_every_table_starts_as_xavier_says() -> None:
    torch.manual_seed(0)
    module = AtomEncoder(50)
    for table, size in zip(module.weight.split(ATOM_VOCABULARY), ATOM_VOCABULARY, strict=True):
        bound = (6 / (size + 50)) ** 0.5
        assert 0.9 * bound < float(table.detach().abs().max()) <= bound
    before = module.weight.clone()
    module.reset_parameters()
    assert not torch.equal(before, module.weight)


@pytest.mark.parametrize("wrong", [12.0, -1.0, 0.5, float("nan")])
def test_a_code_outside_of_its_vocabulary_is_named(wrong: float) -> None:
    codes = draw_codes(ATOM_VOCABULARY).double()
    codes[5, 2] = wrong
    with pytest.raises(ValueError, match=r"`x` must hold whole codes, 0 to 11 in column 2.*row 5"):
        AtomEncoder(4)(codes)


def test_codes_have_a_column_each() -> None:
    with pytest.raises(ValueError, match=r"`edge_attr` must have shape \(n, 3\).*got \(4, 2\)"):
        BondEncoder(4)(torch.zeros(4, 2))
    with pytest.raises(ValueError, match="`width` must be"):
        AtomEncoder(0)
    with pytest.raises(ValueError, match="`vocabulary` must be"):
        CodeEncoder((3, 0), 4)
    assert BondEncoder(4)(torch.zeros(0, 3)).shape == (0, 4)


def test_walks_are_normalised_over_the_batch() -> None:
    torch.manual_seed(0)
    module, pe = RWSEEncoder(20, 28).double(), randn(9, 20) * 3 + 1
    got = module(pe)
    spread = pe.var(0, correction=0) + module.norm.eps
    plain = (pe - pe.mean(0)) / spread.sqrt()
    assert_close(got, plain @ module.linear.weight.T + module.linear.bias, rtol=0, atol=1e-12)
    assert sum(p.numel() for p in module.parameters()) == 40 + 20 * 28 + 28
    with pytest.raises(ValueError, match=r"`pe` must have shape \(n, 20\)"):
        module(pe[:, :4])


def slow_eigen(module: LapPEEncoder, pe: Tensor, signs: Tensor) -> Tensor:
    """Node by node, frequency by frequency; what is NaN is left out."""
    k, rows = module.frequencies, []
    for row in pe:
        total = torch.zeros(module.width, dtype=pe.dtype)
        for f in range(k):
            if not row[f].isnan():
                pair = torch.stack([signs[f] * row[f], row[k + f]])
                inner = (module.inner.weight @ pair + module.inner.bias).relu()
                total = total + (module.outer.weight @ inner + module.outer.bias).relu()
        rows.append(total)
    return torch.stack(rows)


def small_graph_pe(k: int = 4) -> Tensor:
    pe = randn(6, 2 * k)
    pe[:2, 2:k] = pe[:2, k + 2 :] = float("nan")  # a graph of two nodes
    return pe


def test_eigenpairs_are_summed_over_those_that_there_are() -> None:
    torch.manual_seed(0)
    module, pe = LapPEEncoder(4, 5).double().eval(), small_graph_pe()
    assert_close(module(pe), slow_eigen(module, pe, torch.ones(4)), rtol=0, atol=1e-13)
    assert sum(p.numel() for p in LapPEEncoder(10, 16).parameters()) == 2 * 32 + 32 + 32 * 16 + 16
    module(pe).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


def test_signs_are_drawn_in_training_once_per_frequency_of_a_batch() -> None:
    torch.manual_seed(0)
    module, pe = LapPEEncoder(4, 5).double().train(), small_graph_pe()
    every = [torch.tensor([(k >> f & 1) * 2 - 1 for f in range(4)]).double() for k in range(16)]
    choices = [slow_eigen(module, pe, signs) for signs in every]
    seen = set()
    for _ in range(60):
        out = module(pe)
        seen |= {k for k, want in enumerate(choices) if torch.allclose(out, want, atol=1e-12)}
        assert any(torch.allclose(out, want, atol=1e-12) for want in choices)
    assert len(seen) > 8
    assert torch.equal(module.eval()(pe), module(pe))
