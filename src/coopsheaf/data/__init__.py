"""Data: datasets by name, the user's own tables and graphs; one front door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.data.convert import from_arrays as from_arrays
    from coopsheaf.data.convert import from_data as from_data
    from coopsheaf.data.convert import from_networkx as from_networkx
    from coopsheaf.data.dataset import GraphDataset as GraphDataset
    from coopsheaf.data.dataset import NodeDataset as NodeDataset
    from coopsheaf.data.dataset import Processing as Processing
    from coopsheaf.data.errors import DataError as DataError
    from coopsheaf.data.links import LinkDataset as LinkDataset
    from coopsheaf.data.links import split_links as split_links
    from coopsheaf.data.registry import list_datasets as list_datasets
    from coopsheaf.data.registry import load_dataset as load_dataset
    from coopsheaf.data.tables.load import TableData as TableData
    from coopsheaf.data.tables.load import load_tables as load_tables
    from coopsheaf.data.tables.schema import TableSchema as TableSchema

__getattr__, __dir__, __all__ = attach(__name__)
