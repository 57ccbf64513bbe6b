"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file in one step; after an error or an interruption the old one is still there."""
    if path.exists() and not path.is_file():  # a pipe or a device
        path.write_bytes(content)
        return
    with tempfile.NamedTemporaryFile(dir=path.resolve().parent, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), 0o666 & ~mask)
            os.replace(file.name, path.resolve())
        except BaseException:
            os.unlink(file.name)
            raise


def save(figure: Figure, prefix: str) -> None:
    """Write a picture to PREFIX.svg and PREFIX.png."""
    for ending in ("svg", "png"):
        picture = BytesIO()
        figure.savefig(picture, format=ending, dpi=100)
        write_whole(Path(f"{prefix}.{ending}"), picture.getvalue())
