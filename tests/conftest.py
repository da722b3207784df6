"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# Nothing is timed in tests: a busy machine is no failure.
settings.register_profile("coopsheaf", deadline=None)
settings.load_profile("coopsheaf")
