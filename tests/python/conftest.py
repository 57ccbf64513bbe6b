"""Every test session has its own databases and kernel cache, so that no test depends on another."""

import os
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="warploom-tests-")
for _name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
    os.environ[_name] = os.path.join(_folder.name, _name)
