"""Every test session has its own databases and kernel cache, so that no test depends on another."""

import os
import tempfile
from pathlib import Path

from hypothesis import settings

_folder = tempfile.TemporaryDirectory(prefix="warploom-tests-")
for _name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
    os.environ[_name] = os.path.join(_folder.name, _name)

# Tests run beside others, where OpenMP threads that spin while they wait would occupy the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# ./check --full tests kernels as users get them.
if not os.environ.get("WARPLOOM_FULL"):
    os.environ.setdefault("WARPLOOM_CC", str(Path(__file__).with_name("quick_cc")))

# Hypothesis runs the same examples each time; ./check --full runs many more, which are random.
settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=2000, deadline=None)
settings.load_profile("full" if os.environ.get("WARPLOOM_FULL") else "quick")
