"""Pages that are made when the site is built, and links from pages to files of the tree.

The references come from C headers and Python docstrings, and CHANGELOG.md, CONTRIBUTING.md and
others become pages. tools/docs builds the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
import c_reference  # noqa: E402

HEADERS = ["", "_attention", "_message", "_tune"]
MODULES = {
    "warploom": "warploom",
    "torch": "warploom.torch",
    "scatter": "warploom.torch.scatter",
    "distributed": "warploom.torch.distributed",
    "pyg": "warploom.pyg",
    "jax": "warploom.jax",
}
TEXTS = {
    "CHANGELOG": "changes",
    "CONTRIBUTING": "contributing",
    "SECURITY": "security",
    "examples/README": "examples",
}


def from_root(text: str) -> str:
    """The links of a file of the root as those of a page."""
    text = re.sub(r"\]\((\.\./)?docs/", "](", text)
    text = re.sub(r"\[([^]]*)\]\([\w/]+\.(?:c|cpp|f90|py|ipynb)\)", r"`\1`", text)
    for name, page in TEXTS.items():
        text = text.replace(f"]({name}.md", f"]({page}.md")
    return text.replace("](README.md", "](index.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made of other files."""
    made = {page: from_root((ROOT / f"{name}.md").read_text()) for name, page in TEXTS.items()}
    headers = [ROOT / f"include/warploom/warploom{part}.h" for part in HEADERS]
    links: dict[str, str] = {}
    for header in headers * 2:  # the first time for `links` alone
        made[header.name.replace(".", "-")] = c_reference.page(header, links)
    for name, module in MODULES.items():
        made[f"api-{name}"] = f"# {module}\n\n::: {module}\n"
    for name, text in made.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links of pages lead to the pages of files in the root."""
    return re.sub(
        r"\]\(\.\./(\w+\.md)", lambda link: "](" + from_root("](" + link[1])[2:], markdown
    )
