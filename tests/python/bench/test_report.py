"""The HTML report of a database, from hand-made answers of the command `warploom`."""

import base64
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from bench.__main__ import main
from bench.reports import pictures
from bench.reports.database import load

EVIL = "</script><script>alert(1)</script>&'\""
ESCAPED = "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;&#34;"
ROWS128, ROWS16 = "host_row/rows=128,tile=32", "host_row/rows=16,tile=32"
NNZ = "host_nnz/nonzeros=8192,tile=32"
PROBLEM = "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none"
HOST = {
    "device_kind": "host",
    "device_arch": "x86_64",
    "device_name": "A <b>processor</b>",
    "device_processors": 2,
    "device_memory_bytes": 1 << 30,
}
H200 = {
    **HOST,
    "device_kind": "cuda",
    "device_arch": "sm_90",
    "device_name": "NVIDIA H200",
    "device_processors": 132,
}


def candidate(matrix, number, variant, us, chosen_by="", **members):
    """Return a row of `warploom db candidates`; `stats` are members of its measurement."""
    return {
        "matrix": matrix,
        "fingerprint": f"{number:032x}",
        "bucket": "v1 rows=9 mean=5 cv=0",
        "problem": PROBLEM,
        "n": 32,
        "variant": variant,
        "us": us,
        "spread_us": 0.1,
        "prepare_us": 0,
        "measurements": 1,
        "timed": "measured",
        "chosen_by": chosen_by,
        **members,
    }


def measurement(row, device=HOST, **members):
    return {
        "id": "0",
        **device,
        **{key: row[key] for key in ("fingerprint", "variant", "problem", "n")},
        "rows": 1000,
        "nnz": 7000,
        "cv": 0.2,
        "compiler": "cc 12.2.0 <x>",
        "driver": "",
        "clock": "hot",
        "failed": row["timed"] == "failed",
        "made_at": 1700000000 + int(row["fingerprint"], 16),
        **members,
    }


# Two matrices of one size and a larger one; the best variant takes 10 us on each.
LARGE = {"rows": 1000000, "nnz": 900000}
CANDIDATES = [
    candidate(EVIL, 1, ROWS16, 10.0),
    candidate(EVIL, 1, ROWS128, 20.0, "rules"),
    candidate(EVIL, 1, NNZ, 40.0, "predicted"),
    candidate("b", 2, NNZ, 10.0),
    candidate("b", 2, ROWS16, 20.0, "predicted"),
    candidate("b", 2, ROWS128, 30.0, "rules"),
    candidate("c", 3, ROWS128, 10.0, "rules, predicted"),
    candidate("c", 3, ROWS16, 20.0),
    candidate("c", 3, NNZ, 40.0),
    candidate("c", 3, f"own{EVIL}/x=1", 50.0),
]
MEASUREMENTS = [measurement(row, **(LARGE if row["matrix"] == "c" else {})) for row in CANDIDATES]
CLASS = "host/x86_64/A <b>processor</b>/2"


class Program:
    """A program that stands for `warploom` and prints stored answers."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "warploom"
        self.path.write_text(
            '#!/bin/sh\ncd "$(dirname "$0")" && echo "$@" >> calls\n'
            'case "$1" in --version) echo "warploom 1.2.3";; *) cat "$1.out";; esac\n'
        )
        self.path.chmod(0o755)
        (folder / "tuned.db").write_bytes(b"x" * 2**20)
        self.answer()

    def answer(self, candidates=CANDIDATES, lines=MEASUREMENTS, name=CLASS, trained_at=0):
        database = str(self.folder / "tuned.db")
        found = {"database": database, "device_class": name, "trained_at": trained_at}
        (self.folder / "db.out").write_text(json.dumps({**found, "candidates": candidates}))
        whole = [{"warploom": "tuned", "version": 1}, *lines]
        (self.folder / "export.out").write_text("".join(json.dumps(x) + "\n" for x in whole))

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()


class Checker(HTMLParser):
    """Checks that elements are closed in order and that nothing is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.pictures = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "img":
            assert found["alt"]
            kind, _, content = found["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            self.pictures.append(base64.b64decode(content).decode())
        assert "src" not in found or tag == "img"
        assert found.get("href", "#").startswith("#")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(page):
    checker = Checker()
    checker.feed(page)
    assert not checker.open
    for never in ("http:", "https:", "@import", "url(", "{{", "{%", "<link", "nan", "NaN"):
        assert never not in re.sub(r"data:image[^\"]*", "", page)
    return checker.pictures


def data_of(page):
    text = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert "<" not in text
    return json.loads(text)


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


@pytest.fixture
def page(program):
    """Make a report of what the program answers, and return it."""

    def make(*arguments):
        path = program.folder / "report.html"
        command = ["report", *map(str, arguments), "--warploom", str(program.path)]
        assert main([*command, "-o", str(path)]) == 0
        text = path.read_text()
        checked(text)
        return text

    return make


def ways_of(page):
    """Return the rows of the tables of ways of choosing."""
    rows = re.findall(r"<tr><td>([^<]*)</td>(.*)</tr>", page.partition('id="candidates"')[0])
    return {way: re.findall(r">([^<]*)</td>", rest) for way, rest in rows}


def test_measurements(page):
    text = page()
    for found in (
        "<h1>warploom: what was measured on A &lt;b&gt;processor&lt;/b&gt;</h1>",
        "host/x86_64/A &lt;b&gt;processor&lt;/b&gt;/2",
        "host, x86_64, 2 processors, 1.0 GiB",
        "10 (0 failed, 0 with a cold cache)",
        "matrices: 3, problems: 1, cases: 3",
        "2023-11-14 22:13 UTC to 2023-11-14 22:13 UTC",
        "<dt>pins</dt><dd>0</dd>",
        "<dt>model</dt><dd>none</dd>",
        "1.00 MiB",
        "<td>cc 12.2.0 &lt;x&gt;</td>",
        "Made by warploom 1.2.3 on ",
        "over the built-in rules: 1.82x</strong> in the geometric mean of 3 cases, at most 3.00x (",
        "<li>Over a plain OpenMP loop: not in this database.",
    ):
        assert found in text
    assert "alert(1)</script>" not in text


def test_ways(page):
    # Over the best, variant 16 takes 1, 2 and 2 times, the rules 2, 3 and 1, the model 4, 2 and 1.
    assert ways_of(page()) == {
        f"one fixed: {ROWS16}": ["3", "1.587x", "2.000x", "2.00x", "b, N = 32"],
        "rules": ["3", "1.817x", "2.000x", "3.00x", "b, N = 32"],
        "predicted": ["3", "2.000x", "2.000x", "4.00x", f"{ESCAPED}, N = 32"],
    }  # GE-SpMM was not measured in this database


def test_data(page):
    data = data_of(page())
    assert data["problems"] == [PROBLEM]
    assert data["variants"] == [NNZ, ROWS128, ROWS16, f"own{EVIL}/x=1"]
    first = data["cases"][0]
    assert (first["matrix"], first["n"], first["rows"], first["nnz"]) == (EVIL, 32, 1000, 7000)
    assert (first["winner"], first["us"], first["failed"], first["more"]) == (2, 10, 0, 0)
    assert first["ways"] == [["one fixed", 2], ["rules", 1], ["predicted", 0]]
    assert first["candidates"] == [
        [2, 10, 0.1, 0, 1, 1],
        [1, 20, 0.1, 0, 1, 1],
        [0, 40, 0.1, 0, 1, 1],
    ]
    # the script finds a mark by the axes of its picture
    assert 'data-plane="mean cv 0.5625 11.2 -0.08 1.3 0.17 0.96 0.04 0.66"' in page()
    assert 'data-problem="0" data-n="32"' in page()


def test_many_candidates_are_cut(program, page):
    rows = [candidate("m", 1, f"host_row/rows={i}", 100.0 - i) for i in range(70)]
    program.answer(rows, [measurement(row) for row in rows])
    case = data_of(page())["cases"][0]
    assert len(case["candidates"]) == 60
    assert case["more"] == 10
    assert case["candidates"][0][1] == 31


def test_pictures(page):
    maps, speedups, regret, *coverage = checked(page())
    for label in ("non-zeros a row", "skew", "host_nnz (1)", "host_row (2)"):
        assert label in maps
    assert "one fixed" in speedups
    assert "rules" in regret and "predicted" in regret
    assert len(coverage) == 2 and all("measured" in picture for picture in coverage)


def test_verdict_reads_results(program, page):
    name = HOST["device_name"]
    core = {"suite": "core", "device": name, "matrix": "x<y", "n": 64, "us": 2.0}
    core |= {
        "prepared_us": 2.0,
        "cusparse": None,
        "host_rivals": {"openmp": 8.0, "graphblas": None},
    }
    other = {**core, "device": "other", "us": 0.1}
    compare = {"input": "z", "device": name, "device_kind": "host"}
    compare["comparisons"] = [{"n": 8, "speed_up": 0.25}, {"n": 9, "speed_up": None}]
    results = program.folder / "results.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in (core, other, compare)))
    assert (
        "Over a plain OpenMP loop: 1.00x</strong> in the geometric mean of 2 cases, at most 4.00x "
        "(x&lt;y, N = 64). It lost in 1: 0.25x (z, N = 8).</li>" in page(results)
    )
    results.write_text(json.dumps(other) + "\n")
    with pytest.raises(ValueError, match=r"holds no case of bench core or compare on A <b>"):
        page(results)
    for text in ("no line\n", "[1]\n", '{"suite":"torch"}\n'):
        results.write_text(text)
        with pytest.raises(ValueError, match=r"results\.jsonl"):
            page(results)


def test_verdict_on_a_gpu(program, page):
    row = candidate("g", 1, "row_crc/cf=1,rows=4", 3.0)
    program.answer([row], [measurement(row, H200)], "cuda/sm_90/NVIDIA H200/132")
    assert "Over cuSPARSE: not in this database." in page()
    line = {"suite": "core", "device": "NVIDIA H200", "matrix": "g", "n": 32, "us": 2.0}
    line |= {"prepared_us": 1.0, "cusparse": {"alg1_nopre": 6.0, "alg1": 4.0, "alg2": None}}
    results = program.folder / "results.jsonl"
    results.write_text(json.dumps(line) + "\n")
    text = page(results)
    assert "Over cuSPARSE without preprocessing: 3.00x</strong>" in text
    assert "Over cuSPARSE with its preprocessing kept: 4.00x</strong>" in text
    assert text.count("It lost nowhere.") == 2


def test_a_pruned_database_says_so(program, page):
    """It has the rules' choice only where that was among the kept variants."""
    caveat = "<strong>Survivors only.</strong>"
    assert caveat not in page()
    kept = [CANDIDATES[0], CANDIDATES[3], CANDIDATES[6]]
    program.answer(kept, [measurement(row) for row in kept])
    text = page()
    assert caveat in text
    assert ways_of(text)["rules"][:2] == ["1 of 3", "1.000x"]
    assert "rules, 1 of 3 cases" in checked(text)[2]


def test_predicted(program, page):
    others = ({**row, "chosen_by": row["chosen_by"].partition("pred")[0]} for row in CANDIDATES[1:])
    rows = [{**CANDIDATES[0], "chosen_by": "predicted"}, *others]
    program.answer(rows, trained_at=1700000000)
    text = page()
    assert ways_of(text)["predicted"][0] == "1 of 3"
    assert "<dt>model</dt><dd>2023-11-14 22:13 UTC</dd>" in text
    assert "did not see, over the rules: 2.00x</strong> in the geometric mean of 1 cases" in text


def test_other_device_classes_are_left_out(program, page):
    best = candidate("far", 9, "row_crc/cf=1,rows=4", 3.0)
    prepared = candidate("far", 9, "merge_path/prepared=1", 1.5, prepare_us=7.0)
    failed = candidate("far", 9, "row_vec/x=1", None, timed="failed", spread_us=None)
    rows = [best, prepared, failed]
    lines = [measurement(row, H200) for row in rows]
    lines += [measurement(best, H200, clock="cold"), *MEASUREMENTS]
    lines.append({"pin": "v1 rows=9 mean=5 cv=0", "class": "cuda/sm_90/NVIDIA H200/132"})
    program.answer(rows, lines, "cuda/sm_90/NVIDIA H200/132")
    text = page("--device", "cuda:0", "--db", "x.db")
    assert program.calls()[:2] == [
        "db candidates --json --db x.db --device cuda:0",
        "export -o - --db x.db",
    ]
    assert "<h1>warploom: what was measured on NVIDIA H200</h1>" in text
    assert "4 (1 failed, 1 with a cold cache)" in text
    assert "host/x86_64/A &lt;b&gt;processor&lt;/b&gt;/2 (10)" in text
    assert "<dt>pins</dt><dd>1</dd>" in text
    assert ways_of(text)["GE-SpMM"][:2] == ["1", "1.000x"]  # the prepared one is not the best
    case = data_of(text)["cases"][0]
    assert case["failed"] == 1
    assert case["candidates"][0][1:4] == [1.5, 0.1, 7]
    assert case["us"] == 3


def test_the_shipped_database_is_exported_by_its_option(program, page):
    (program.folder / "system.db").write_bytes(b"x")
    program.answer()
    answer = (program.folder / "db.out").read_text().replace("tuned.db", "system.db")
    (program.folder / "db.out").write_text(answer)
    page()  # nothing was tuned yet
    assert program.calls()[:2] == ["db candidates --json", "export -o - --system"]


def test_nothing_measured(program, page):
    program.answer([], [], None)
    text = page()
    assert "holds no measurements" in text
    assert "warploom tune" in text
    assert "tuned.db" in text


@pytest.mark.parametrize(
    "case",
    [
        ({}, {"nnz": 0, "cv": 0.0}),
        ({"us": None, "spread_us": None, "timed": "failed"}, {}),
        ({"prepare_us": 1e-6}, {}),
        ({"problem": "of another version"}, {}),
        ({"bucket": "v1 rows=29 mean=13 cv=4"}, {"cv": 400.0, "rows": 10**9, "nnz": 10**11}),
        ({"bucket": "v1 rows=-1 mean=-128 cv=0"}, {"rows": 0, "nnz": 0, "cv": 0.0}),
        ({"us": 9.2e12, "matrix": None}, {"made_at": 253402300799}),
        None,
    ],
)
def test_odd_measurements(program, page, case):
    """Measurements that a logarithmic axis cannot show, or without a time, still make a page."""
    members, stats = case or ({}, {"clock": "cold"})
    row = candidate("odd", 1, ROWS128, 10.0) | members
    program.answer([row], [measurement(row, **stats)])
    data_of(page())
    rows = [row, *CANDIDATES[3:]]
    program.answer(rows, [measurement(row, **stats), *MEASUREMENTS[3:]])
    data_of(page())


def test_coverage(program):
    """Near: at most 1 away. Farther: at most 3. The third dimension counts as equal."""
    cases = load(str(program.path), [], None).cases
    rows_mean, mean_cv = (pictures.shades(plane, cases) for plane in pictures.COVERAGE_PLANES)
    row, mean = pictures.ROWS.index(9), pictures.MEANS.index(5)
    assert rows_mean[mean, row] == rows_mean[mean, row + 2] == rows_mean[mean + 2, row] == 0
    assert rows_mean[mean, row + 3] == rows_mean[mean + 6, row] == 1
    assert np.isnan(rows_mean[mean + 7, row]) and np.isnan(rows_mean[mean, row + 7])
    assert mean_cv[0, mean] == mean_cv[1, mean] == 0
    assert mean_cv[2, mean] == mean_cv[3, mean] == 1
    assert np.isnan(mean_cv[4, mean])


def test_failures_leave_the_old_page(program, page, capfd):
    path = program.folder / "report.html"
    path.write_text("old")
    program.path.write_text("#!/bin/sh\necho 'warploom: x.db: no such file' >&2\nexit 1\n")
    with pytest.raises(ValueError, match="db failed"):
        page()
    assert "warploom: x.db: no such file" in capfd.readouterr().err
    assert path.read_text() == "old"
    program.path.unlink()
    with pytest.raises(FileNotFoundError, match="name it by --warploom"):
        page()
    assert path.read_text() == "old"


def test_with_the_real_program(tmp_path):
    program = shutil.which("warploom")
    if program is None:
        pytest.skip("needs the program warploom")
    path = tmp_path / "tuned.db"
    tune = [
        program,
        "tune",
        "uniform:rows=300,d=5",
        "-n",
        "8",
        "--device",
        "host",
        "--budget",
        "5s",
    ]
    subprocess.run([*tune, "--budget", "5s", "--db", str(path)], check=True, capture_output=True)
    page = tmp_path / "report.html"
    assert main(["report", "--db", str(path), "-o", str(page)]) == 0
    text = page.read_text()
    assert len(checked(text)) == 5
    assert data_of(text)["cases"][0]["rows"] == 300


def test_samplings(page, program):
    """Settings of calibrate; their names are data."""
    torch = pytest.importorskip("warploom.torch")
    some, layer = torch.Sample(16, "bucket"), torch.LayerSampling
    tried = (
        torch.Tried({EVIL: some}, 700, 0.004, 0.009, 10),
        torch.Tried({EVIL: None}, 1400, 0, 0, 1),
    )
    of = ("0", 0.01, 0.95, EVIL, "cpu", 0.004, 0.009, 700, 1400)
    torch.Sampling({EVIL: layer(some)}, *of, tried).save(program.folder / "serve.json")
    text = page("--sampling", program.folder / "serve.json")
    before = page()
    assert text.count("<img") == before.count("<img") + 1 and "Budgets of accuracy" not in before
    assert "serve.json" in text and EVIL not in text and "2.0 times as fast" in text
    with pytest.raises(FileNotFoundError):
        page("--sampling", program.folder / "missing.json")


def test_standard_output(program, capsys):
    assert main(["report", "-o", "-", "--warploom", str(program.path)]) == 0
    assert "<!DOCTYPE html>" in capsys.readouterr().out


# `WATCH` records errors from the start. `PROBE` runs at the end: it chooses other matrices and
# writes what the page shows into attributes of the body.
WATCH = """<script>window.errors = [];
addEventListener('error', (e) => errors.push(e.message));
addEventListener('securitypolicyviolation', (e) => errors.push(e.violatedDirective));</script>"""
PROBE = """<script>addEventListener('load', () => {
  const tell = (name, value) => document.body.setAttribute('data-' + name, value);
  const select = document.getElementById('matrix'), rows = document.getElementById('rows');
  const first = () => rows.rows[0].cells[0].textContent;
  const chosen = () => [...rows.rows].map((r) => r.cells[6].textContent).join('; ');
  const choose = (name) => {
    select.value = [...select.options].find((o) => o.textContent === name).value;
    select.dispatchEvent(new Event('change'));
  };
  tell('matrices', select.options.length);
  choose('b'); tell('b', first() + ' ' + rows.rows.length);
  choose('c'); tell('c', first() + ' ' + rows.rows.length);
  tell('chosen', chosen());
  tell('about', document.getElementById('about').textContent.slice(0, 9));
  tell('pictures', [...document.images].filter((i) => i.naturalWidth > 0).length);
  tell('scripts', document.scripts.length);
  const map = document.querySelector('figure[data-n]'), tip = document.querySelector('.tip');
  const box = map.querySelector('img').getBoundingClientRect(), seen = new Set();
  for (let x = 0; x < box.width; x += 8) for (let y = 0; y < box.height; y += 8) {
    const at = { clientX: box.left + x, clientY: box.top + y };
    map.dispatchEvent(new PointerEvent('pointermove', at));
    if (!tip.hidden) seen.add(tip.textContent.slice(0, 50));
  }
  tell('tips', [...seen].sort().join('; '));
  const root = document.documentElement;
  tell('overflow', root.scrollWidth > root.clientWidth);
  tell('errors', errors.join('; ') || 'none');
});</script>"""


# The page in two frames of 400 pixels' width, with and without JavaScript.
NARROW = """<!DOCTYPE html><iframe width="400" height="900" srcdoc="{page}"></iframe>
<iframe width="400" height="900" sandbox="allow-same-origin" srcdoc="{page}"></iframe>
<script>addEventListener('load', () => [...document.querySelectorAll('iframe')].map((frame, i) => {{
  const page = frame.contentDocument, root = page.documentElement;
  const note = page.querySelector('noscript p'), rows = page.getElementById('rows').rows.length;
  const seen = page.querySelector('figure img').getBoundingClientRect().width;
  document.body.setAttribute('data-frame' + i, [root.clientWidth > 300 && root.clientWidth <= 400,
    root.scrollWidth > root.clientWidth, seen > 200, rows > 0, !!note].join(' '));
}}));</script>"""


def in_browser(path, text):
    """Return the body of a page after its scripts ran, and what the browser said on its console."""
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("needs chromium")
    path.write_text(text)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    options += ["--window-size=500,900", "--enable-logging=stderr"]
    done = subprocess.run(
        [browser, *options, f"--user-data-dir={path.parent}/p", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout[done.stdout.index("<body") :], said


def test_the_page_is_narrow_and_needs_no_script(page, tmp_path):
    text = NARROW.format(page=html.escape(page()))
    body, said = in_browser(tmp_path / "narrow.html", text)
    assert all("frame is sandboxed" in line for line in said)
    # as wide as the frame, nothing beside it, pictures, rows of the table, the note on JavaScript
    assert 'data-frame0="true false true true false"' in body
    assert 'data-frame1="true false true false true"' in body


def test_the_page_works_in_a_browser(page, tmp_path):
    text = page().replace("<meta charset", WATCH + "<meta charset", 1)
    body, said = in_browser(tmp_path / "watched.html", text.replace("</body>", PROBE + "</body>"))
    assert said == []
    for found in (
        'data-matrices="3"',
        f'data-b="{NNZ} 3"',
        f'data-c="{ROWS128} 4"',
        'data-chosen="rules, predicted; one fixed; ; "',
        'data-about="c: 1,000,"',
        'data-pictures="5"',
        # two of the page and two of this test, so no matrix name became a script
        'data-scripts="4"',
        f"c: {ROWS128}, 10.00 us",  # the text under the pointer
        'data-overflow="false"',
        'data-errors="none"',
    ):
        assert found in body
