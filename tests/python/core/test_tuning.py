"""Tuning, explain, databases, devices, and the search for NVRTC."""

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import warploom
from warploom import _library

A = sp.random(200, 100, 0.05, format="csr", dtype=np.float32, random_state=1)


def run_python(code, **environment):
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=found, check=True, capture_output=True, text=True).stdout


def test_tune_then_explain_then_export_and_import(tmp_path):
    seen = []
    found = warploom.tune(A, 16, progress=lambda *step: seen.append(step), name="ours")
    assert found == sorted(found, key=lambda candidate: (candidate.failed, candidate.seconds))
    assert found[0].max_rel_err < 1e-5
    assert all(0 <= done <= total for done, total, _ in seen)
    assert "this very matrix was tuned for this n" in warploom.explain(A, 16)
    assert warploom.explain(A, 16, json=True)["variant"] in {c.variant for c in found}
    plan = warploom.Plan(A, 16)
    assert plan.explain(json=True)["step"] == "fingerprint"
    assert plan.expected().seconds == pytest.approx(plan.explain(json=True)["expected_us"] * 1e-6)
    assert plan.expected(4096).simple > plan.expected().simple > 0
    with pytest.raises(ValueError, match="n: 0"):
        plan.expected(0)
    lines = warploom.export_db()
    assert '"ours"' in lines
    warploom.export_db(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_text() == lines
    assert warploom.import_db(tmp_path / "all.jsonl") == 0
    assert warploom.import_db(text=lines) == 0
    assert warploom.export_db() == lines
    is_noisy = any(candidate.spread > 0.25 for candidate in found)  # then tune measures it again
    assert warploom.tune(A, 16) == [] or is_noisy  # nothing is left to measure


def test_results_reach_other_contexts(monkeypatch):
    """warploom.torch has contexts of its own on GPUs."""
    other = _library.Context("host")
    warploom.tune(A, 12)
    monkeypatch.setitem(_library._contexts, "host", other)
    assert warploom.explain(A, 12, json=True)["step"] == "fingerprint"


def test_configure_names_the_files(tmp_path):
    code = """
import os, sys
import numpy as np, scipy.sparse as sp, warploom
warploom.configure(database="tuned.db", system_database="")
warploom.configure(kernel_cache=sys.argv[1] + "/kernels.db")
os.chdir("/")
a = sp.random(200, 100, 0.05, format="csr", dtype=np.float32, random_state=1)
device = warploom.devices()[-1]
assert (device.database, device.system_database) == (sys.argv[1] + "/tuned.db", "")
found = warploom.tune(a, 4, budget=1)
assert '"n":4' in warploom.export_db()
try:
    warploom.configure(database="")
except RuntimeError as error:
    print(error)
open(sys.argv[1] + "/lines", "w").write(warploom.export_db())
"""
    where = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}
    command = [sys.executable, "-c", code, str(tmp_path)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, **where)
    assert "configure: a device is open already" in ended.stdout
    assert {file.name for file in tmp_path.iterdir()} >= {"tuned.db", "kernels.db"}
    assert '"n":4' not in warploom.export_db()  # of this process
    lines = (tmp_path / "lines").read_text()
    code = """
import sys, warploom
warploom.configure(database=sys.argv[1] + "/other.db")
print(warploom.import_db(sys.argv[1] + "/lines"), warploom.import_db(sys.argv[1] + "/lines"))
"""
    command[2] = code
    ended = subprocess.run(command, check=True, capture_output=True, text=True, **where)
    assert ended.stdout.split() == [str(lines.count('"variant":')), "0"]


def test_an_invalid_import_makes_no_database(tmp_path):
    code = f"""
import os, warploom
path = {str(tmp_path / "new.db")!r}
warploom.configure(database=path)
try:
    warploom.import_db(text="no export")
except ValueError:
    print(os.path.exists(path))
"""
    assert run_python(code).split() == ["False"]


def test_configure_without_a_database():
    code = """
import warploom
warploom.configure(database="")
for use in (warploom.export_db, lambda: warploom.import_db(text="")):
    try:
        use()
    except LookupError as error:
        print(error)
"""
    assert run_python(code).count("this context has no user database") == 2


USING = """
import sys
import numpy as np, scipy.sparse as sp, warploom
warploom.configure(database="", system_database="")
a = sp.random(200, 100, 0.05, format="csr", dtype=np.float32, random_state=1)
warploom.use(*sys.argv[1:])
chosen = warploom.explain(a, 24, json=True)
assert np.allclose(warploom.Plan(a, 24)(np.ones((100, 24), np.float32)), a @ np.ones((100, 24)))
print(chosen["step"], chosen["variant"])
try:
    warploom.use(sys.argv[1])
except RuntimeError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Make a folder with the lines and the database of a tuned matrix; also return its kernel."""
    folder = tmp_path_factory.mktemp("exported")
    folder.chmod(0o700)
    code = f"""
import numpy as np, scipy.sparse as sp, warploom
warploom.configure(database={str(folder / "a.db")!r}, system_database="")
a = sp.random(200, 100, 0.05, format="csr", dtype=np.float32, random_state=1)
warploom.tune(a, 24)
warploom.export_db({str(folder / "b.jsonl")!r})
print(warploom.explain(a, 24, json=True)["variant"])
"""
    return folder, run_python(code).strip()


def run_using(*paths):
    command = [sys.executable, "-c", USING, *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True)


@pytest.mark.parametrize("name", ["a.db", "b.jsonl", "."])
def test_use_chooses_by_exported_data(exported, name):
    folder, variant = exported
    before = {file: file.read_bytes() for file in folder.iterdir()}
    folder.chmod(0o500)
    try:
        lines = run_using(folder / name).stdout.splitlines()
    finally:
        folder.chmod(0o700)
    assert lines[0] == f"fingerprint {variant}"
    assert "use: a device is open already" in lines[1]
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_use_puts_later_layers_first(exported, tmp_path):
    folder, tuned = exported
    lines = (folder / "b.jsonl").read_text().splitlines()
    measured = [json.loads(line) for line in lines[1:]]
    best = next(one for one in measured if one["variant"] == tuned)
    device = f"host/{best['device_arch']}/{best['device_name']}/{best['device_processors']}"
    others = sorted({one["variant"] for one in measured} - {tuned})[:2]
    for variant, name in zip(others, ("1.jsonl", "2.jsonl")):
        pin = {"pin": best["fingerprint"], "class": device, "problem": best["problem"]}
        text = json.dumps({**pin, "n": 24, "variant": variant})
        (tmp_path / name).write_text(f"{lines[0]}\n{text}\n")
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for order, variant in ((files, others[1]), (files[::-1], others[0]), ([tmp_path], others[1])):
        assert run_using(folder, *order).stdout.splitlines()[0] == f"pin {variant}"


def refused(*paths):
    """Return the type of the exception of `use` and its text, of another process."""
    code = f"""
import warploom
try:
    warploom.use(*{[str(path) for path in paths]!r})
except Exception as error:
    print(type(error).__name__, error)
warploom.explain(__import__("scipy.sparse").sparse.eye(9, format="csr", dtype="float32"), 4)
"""
    return run_python(code).strip()


def test_use_refuses_what_it_cannot_use(exported, tmp_path):
    folder, _ = exported
    whole = (folder / "b.jsonl").read_bytes()
    (tmp_path / "cut.jsonl").write_bytes(whole[:-30])
    (tmp_path / "cut.db").write_bytes((folder / "a.db").read_bytes()[:3000])
    (tmp_path / "other").write_text("%%MatrixMarket")
    (tmp_path / "kernels.archive").write_bytes(b"wlmkerns" + bytes(90))
    (tmp_path / "empty").mkdir()
    expected = {
        "nowhere": "FileNotFoundError",
        "cut.jsonl": "ValueError",
        "cut.db": "RuntimeError",
        "other": "ValueError",
        "kernels.archive": "RuntimeError",
        "empty": "LookupError",
    }
    for name, error in expected.items():
        text = refused(folder / "b.jsonl", tmp_path / name)
        assert text.startswith(f"{error} "), text
        assert str(tmp_path / name) in text
        assert "b'" not in text
    assert refused(folder) == ""
    with pytest.raises(TypeError, match="paths: name a file"):
        warploom.use()
    with pytest.raises(TypeError, match="paths: a int is no path"):
        warploom.use(3)
    with pytest.raises(ValueError, match="paths: is empty; name a file"):
        warploom.use("")  # which is not the current folder


def test_configure_compiles_in_the_background():
    code = """
import time
import numpy as np, scipy.sparse as sp, warploom
warploom.configure(database="", system_database="", kernel_cache="", compile_in_background=True)
a = sp.random(300, 200, 0.05, format="csr", dtype=np.float32, random_state=1)
b = np.random.default_rng(2).random((200, 32), dtype=np.float32)
first = warploom.Plan(a, 32)
print(first.variant)
assert np.allclose(first(b), a @ b, atol=1e-4)
while (later := warploom.Plan(a, 32)).variant == "host_builtin":
    time.sleep(0.05)
assert np.allclose(later(b), a @ b, atol=1e-4)
"""
    assert run_python(code).split()[-1] == "host_builtin"


@pytest.mark.parametrize("name", ["database", "system_database", "kernel_cache", "kernel_archive"])
def test_configure_names_a_wrong_file(name):
    with pytest.raises(TypeError, match=f"{name}: a int is no path"):
        warploom.configure(**{name: 3})
    with pytest.raises(ValueError, match=f"{name}: has a NUL byte"):
        warploom.configure(**{name: "a\0b"})


def test_progress_stops_tuning():
    assert len(warploom.tune(A, 8, progress=lambda done, total, last: last is not None)) >= 1


def test_an_exception_of_progress_is_passed_on():
    def progress(done, total, last):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        warploom.tune(A, 4, progress=progress)


def test_bad_lines_are_named():
    with pytest.raises(ValueError, match="1"):
        warploom.import_db(text="no json\n")
    with pytest.raises(OSError, match="nowhere"):
        warploom.import_db("/nowhere/all.jsonl")
    with pytest.raises(ValueError, match="path: is empty; name a file"):
        warploom.import_db("")
    with pytest.raises(TypeError, match="path, text"):
        warploom.import_db()


def test_online_tuning():
    plan = warploom.Plan(A, 16, online={"share": 0.5})
    b = np.ones((100, 16), np.float32)
    for _ in range(20):
        assert np.allclose(plan(b), A @ b)
    state = plan.online_state()
    assert state["calls"] == 20
    assert state["variant"] == plan.variant
    plan.close()


def test_devices_name_the_shipped_database():
    *_, host = warploom.devices()
    assert host.device == "host"
    folder = os.path.join(os.environ["XDG_DATA_HOME"], "warploom")  # made with the first database
    assert os.path.realpath(os.path.dirname(host.database)) == os.path.realpath(folder)
    assert os.path.basename(host.system_database) == "system.db"
    assert os.path.exists(host.system_database)


def test_without_a_compiler_devices_list_their_limits():
    code = """
import numpy as np, scipy.sparse as sp, warploom
a = sp.eye(3, format="csr", dtype=np.float32)
print(warploom.devices()[-1].limits)
print(warploom.spmm(a, np.ones((3, 2), np.float32)).tolist())
try:
    warploom.spmm(a, np.ones((3, 2), np.float32), reduce="max")
except RuntimeError as error:
    print(error)
"""
    limits, sums, error = run_python(code, WARPLOOM_CC="/nowhere/cc").splitlines()
    assert limits.startswith("no C compiler: only unsampled sums")
    assert sums == "[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]"
    assert "compiler" in error


def test_nvrtc_of_pythons_packages_comes_last(tmp_path, monkeypatch):
    for folder in ("cu13", "cuda_nvrtc"):
        (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("CUDA_HOME", "/toolkit")
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    files = list(_library.nvrtc_files())
    folders = ["", "/toolkit/lib64/", "/usr/local/cuda/lib64/"]
    folders += [f"{tmp_path}/nvidia/{name}/lib/" for name in ("cu13", "cuda_nvrtc")]
    expected = [f"{folder}libnvrtc.so.{version}" for folder in folders for version in (13, 12)]
    assert files == expected


def test_a_library_that_was_loaded_is_found_by_its_name(tmp_path):
    """load_nvrtc relies on this: the C library opens libnvrtc.so.13 without a folder."""
    (tmp_path / "empty.c").write_text("int warploom_probe(void) { return 13; }\n")
    file = tmp_path / "libwarploom_probe.so.13"
    name = "-Wl,-soname,libwarploom_probe.so.13"
    command = ["cc", "-shared", "-fPIC", name, "-o", str(file), str(tmp_path / "empty.c")]
    subprocess.run(command, check=True)
    code = f"import ctypes; ctypes.CDLL({str(file)!r})\n"
    code += "print(ctypes.CDLL('libwarploom_probe.so.13').warploom_probe())"
    assert run_python(code) == "13\n"


def test_warnings_of_the_library_go_to_the_logger(caplog, tmp_path):
    (tmp_path / "warploom").mkdir()
    (tmp_path / "warploom" / "tuned.db").write_text("this is no database, and too long to be empty")
    code = "import logging; logging.basicConfig(); import warploom; warploom.devices()"
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    found["XDG_DATA_HOME"] = str(tmp_path)
    command = [sys.executable, "-c", code]
    errors = subprocess.run(command, env=found, check=True, capture_output=True, text=True).stderr
    assert "WARNING:warploom:" in errors
    assert _library.logger is logging.getLogger("warploom")
