"""Whole networks: encoder, layers, readout."""

from coopsheaf.models.csnn import CSNN

__all__ = ["CSNN"]
