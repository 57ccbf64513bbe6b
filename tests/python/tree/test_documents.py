"""Documents name files that exist and figures that have a source; tests/mutations.tsv fits."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "examples/README.md",
    *sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")),
]
ROOMS = (
    r"\.ci|bench|cli|cmake|core|db|docs|examples|exported|generator|include|python|runtime|select"
    r"|tests|templates|tools|tuner"
)
# `code` names a file if it begins with a folder of the tree, and ends with a file name or a slash.
PATH = re.compile(rf"(?:{ROOMS})/(?:[\w/.-]*/|[\w/.-]*\.[\w.-]*)?", re.A)
COLUMNS = 100


def names_in(document):
    """(line, name) of the files that a document names in links and, but for the changelog, which
    also names files that no longer exist, in `code`."""
    folder = (ROOT / document).parent
    for number, line in enumerate(prose_of(document), 1):
        for link in re.findall(r"\]\(([^)]*)", line):
            name = link.partition("#")[0]
            if name and ":" not in link:  # an address of another site
                yield number, folder / name
        if document != "CHANGELOG.md":
            for code in re.findall(r"`([^`]*)`", line):
                if PATH.fullmatch(code):
                    yield number, ROOT / code


def prose_of(document):
    """The lines of a document; those of blocks of code are empty."""
    in_block = False
    for line in (ROOT / document).read_text().splitlines():
        in_block ^= line.startswith("```")
        yield "" if in_block else line


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_name_existing_files(document):
    missing = [(number, name) for number, name in names_in(document) if not name.exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_lines_fit(document):
    lines = enumerate(prose_of(document), 1)
    # a row of a table is one line
    assert [n for n, text in lines if len(text.encode()) > COLUMNS and text[0] != "|"] == []


def test_names_are_found():
    assert sum(1 for document in DOCUMENTS for _ in names_in(document)) > 60


def test_figures_of_readme_have_a_source():
    """What README says as "2.38 times" stands in docs/performance.md as "2.38x", beside the file
    that it comes from."""
    figures = re.findall(r"([0-9.]+)\**(?= times)", (ROOT / "README.md").read_text())
    performance = (ROOT / "docs/performance.md").read_text()
    assert len(figures) >= 2
    assert [figure for figure in figures if f"{figure}x" not in performance] == []


def test_lines_of_mutations_fit_their_files():
    """tests/mutations.tsv, which tools/mutate reads: each line names a test or a group of tests and
    a text that its file has exactly once. A change of such a text has to update the list."""
    rows = [line.split("\t") for line in (ROOT / "tests/mutations.tsv").read_text().splitlines()]
    assert len(rows) > 100
    for number, (test, file, old, _) in enumerate(rows, 1):
        assert (ROOT / file).read_text().count(old) == 1, f"tests/mutations.tsv:{number}: {file}"
        label, dot, name = test.partition(".")  # a name without a dot is a group of tools/mutate
        program = ROOT / "tests" / label / f"{name.partition('.')[0]}.c"
        assert not dot or program.exists(), f"tests/mutations.tsv:{number}: no test {test}"
