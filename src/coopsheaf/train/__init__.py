"""Training: tasks, recipes, the loop, runs and their records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.train.batches import BatchConfig as BatchConfig
    from coopsheaf.train.config import TrainConfig as TrainConfig
    from coopsheaf.train.data import run_data as run_data
    from coopsheaf.train.defaults import default_for as default_for
    from coopsheaf.train.recipe import DataConfig as DataConfig
    from coopsheaf.train.recipe import Recipe as Recipe
    from coopsheaf.train.recipe import default_recipe as default_recipe
    from coopsheaf.train.recipes import load_recipe as load_recipe
    from coopsheaf.train.recipes import recipe_for as recipe_for
    from coopsheaf.train.records import Record as Record
    from coopsheaf.train.records import find_records as find_records
    from coopsheaf.train.records import read_records as read_records
    from coopsheaf.train.run import Run as Run
    from coopsheaf.train.run import load_run as load_run
    from coopsheaf.train.run import run_split as run_split
    from coopsheaf.train.task import Task as Task
    from coopsheaf.train.training import train as train

__getattr__, __dir__, __all__ = attach(__name__)
