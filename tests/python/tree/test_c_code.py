"""The C code as a whole: its format, which room includes which, and that no files form a circle."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from circles import find_circle

ROOT = Path(__file__).parents[3]
ROOMS = ["include", "core", "select", "generator", "db"]
ROOMS += ["runtime", "exported", "tuner", "cli", "bench"]
FOLDERS = [*ROOMS, "examples", "tools", "tests"]


def c_files(folders):
    found = [f for folder in folders for f in sorted((ROOT / folder).rglob("*.[ch]"))]
    return {f.relative_to(ROOT).as_posix(): f.read_text() for f in found}


def test_tree_is_formatted():
    if not shutil.which("clang-format"):
        assert "clang-format" not in os.environ.get("WARPLOOM_REQUIRE", "").split(",")
        pytest.skip("no clang-format: the format of the tree was not checked")
    files = c_files(FOLDERS)
    assert len(files) > 500
    subprocess.run(["clang-format", "--dry-run", "-Werror", *files], cwd=ROOT, check=True)


# ---- comments and parameters ---------------------------------------------------------------------


def has_item_inside(line):
    """Whether a comment's line has the begin of a list's item inside it, as a formatter leaves a
    list that it took for text."""
    return bool(re.match(r" *(\* |/\*).*[;.:] - ", line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" * - times come from cases; - a time counts twice", True),
        (" * - times come from cases;", False),
        ("  return text; /* one; - two */", False),
    ],
)
def test_lists_that_were_run_together_are_found(line, expected):
    assert has_item_inside(line) == expected


def test_lists_of_comments_are_whole():
    for path, text in c_files(ROOMS).items():
        for number, line in enumerate(text.splitlines(), 1):
            assert not has_item_inside(line), f"{path}:{number}: a list was run together"


HEAD = re.compile(r'^[A-Za-z][^(;={}"#/\n]*\(')
MOST_PARAMETERS = 8


def parameters_of(text):
    """The parameters of each function whose head begins a line."""
    for line in re.finditer(HEAD.pattern, text, re.M):
        depth, parameters, at = 1, 1, line.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            parameters += text[at] == "," and depth == 1
            at += 1
        if text.startswith((";", " {"), at):
            yield parameters, line[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("static int *f(int a, void (*g)(int, int),\n             int c) {\n", [3]),
        ("WLM_API int f(void);\n", [1]),
        ("  f(a, b);\n", []),
        ("static const int a[] = {f(1, 2)};\n", []),
    ],
)
def test_parameters_are_counted(text, expected):
    assert [count for count, _ in parameters_of(text)] == expected


def test_functions_have_few_parameters():
    found = [(c, p, head) for p, t in c_files(FOLDERS).items() for c, head in parameters_of(t)]
    assert len(found) > 1000
    assert [f for f in found if f[0] > MOST_PARAMETERS] == []


# ---- which room includes which -------------------------------------------------------------------

# The floor of each room. Includes go down only; rooms of floor 0 may include each other. A room
# inside another one comes first. The template files here are C text that kernels and the library
# share.
FLOORS = {
    "include/warploom/": 0,
    "warploom/": 0,
    "core/base/": 0,
    "core/problem/": 1,
    "templates/prelude/args.h": 0,
    "templates/prelude/attention_args.h": 0,
    "templates/prelude/batch_args.h": 0,
    "templates/prelude/message_args.h": 0,
    "templates/prelude/product_args.h": 0,
    "templates/prelude/steps_args.h": 0,
    "templates/programs/stats.h": 0,
    "templates/programs/faults.h": 0,
    "core/csr/": 2,
    "core/records/": 2,
    "core/synth/": 3,
    "core/reference/": 3,
    "select/": 2,
    "generator/": 3,
    "db/": 3,
    "runtime/dispatch/": 3,
    "runtime/": 4,
    "exported/library/": 5,
    "exported/": 3,
    "tuner/": 5,
    "cli/": 6,
    "bench/": 7,
}
# Headers of other libraries, and the beginnings of the paths that may include them.
FOREIGN = {
    "cuda": ("runtime/cuda/", "bench/baseline_"),
    "nvrtc": ("runtime/cuda/",),
    "cusparse": ("bench/baseline_", "bench/cusparse_"),
    "lua": ("generator/",),
    "lauxlib.h": ("generator/",),
    "sqlite3.h": ("db/",),
    "jansson.h": ("core/base/json_value", "core/records/"),
    "zlib.h": ("core/csr/",),
    "lzma.h": ("db/kernel_archive",),
    "minizip": ("core/csr/npz",),
    "xxhash.h": ("core/base/",),
}


def room_of(path):
    return next((room for room in FLOORS if path.startswith(room)), None)


def why_refused(path, header):
    """Why a file may not include '"own.h' or '<foreign.h', or None."""
    mark, name = header[0], header[1:]
    public, example = path.startswith("include/"), path.startswith("examples/")
    if mark == "<":
        if public:
            return None if name in ("stddef.h", "stdint.h") else "is not for a public header"
        for begin, allowed in FOREIGN.items():
            if name.startswith(begin):
                return None if path.startswith(allowed) else "is not for this room"
        ours = name.startswith("warploom/") and not example
        return "is ours: include it with quotes" if ours else None
    if example:
        return None if name.startswith("warploom/") else "is not public, and examples are users"
    if public and "/" not in name:  # of its own folder, as after installation
        return None
    source, target = room_of(path), room_of(name)
    if target is None:
        return "is in no room; name it from the root"
    of, to = FLOORS[source], FLOORS[target]
    if source == target or to < of or (of == to == 0 and not public):
        return None
    return "is another room of the same floor" if to == of else "is on a floor above"


def test_includes_go_down():
    files, count = c_files([*ROOMS, "examples"]), 0
    for path, text in files.items():
        for header in re.findall(r'^\s*#\s*include\s+(["<][^">]+)', text, re.M):
            count += 1
            assert why_refused(path, header) is None, f"{path} includes {header[1:]}"
    assert len(files) > 80 and count > 300


@pytest.mark.parametrize(
    ("path", "header", "refused"),
    [
        ("db/store.c", '"core/base/text.h', False),
        ("db/store.c", '"core/base/path.h', False),
        ("db/store.c", '"core/synth/twin.h', True),  # a room of the same floor
        ("db/care.c", '"select/case.h', False),
        ("select/case.c", '"core/records/record.h', True),
        ("select/case.c", '"core/csr/stats.h', True),
        ("select/select.c", '"generator/generator.h', True),
        ("select/snapshot.c", "<sqlite3.h", True),
        ("core/base/text.c", '"db/store.h', True),  # a higher floor
        ("runtime/dispatch/plan.c", '"runtime/context.h', True),
        ("runtime/context.c", '"runtime/dispatch/plan.h', False),
        ("runtime/context.c", '"tuner/timing.h', True),
        ("tuner/tune.c", '"db/store.h', False),
        ("cli/main.c", '"bench/suite.h', True),
        ("bench/bench.c", '"cli/options.h', False),
        ("cli/main.c", '"text.h', True),
        ("runtime/host/device.c", "<cuda.h", True),
        ("runtime/cuda/device.c", "<cuda.h", False),
        ("runtime/dispatch/cuda_x.c", "<cuda.h", True),
        ("bench/baseline_cusparse.c", "<cusparse.h", False),
        ("bench/method.c", "<cusparse.h", True),
        ("cli/cmd_export.c", "<sqlite3.h", True),
        ("include/warploom/warploom.h", "<stdint.h", False),
        ("include/warploom/warploom.h", "<pthread.h", True),
        ("include/warploom/warploom.h", "<cuda.h", True),
        ("include/warploom/warploom.h", '"core/base/text.h', True),
        ("include/warploom/warploom.h", "<stdio.h", True),
        ("include/warploom/warploom_tune.h", '"warploom.h', False),
        ("examples/spmm.c", '"core/base/text.h', True),
        ("examples/spmm.c", "<warploom/warploom.h", False),
    ],
)
def test_rules_of_rooms(path, header, refused):
    assert (why_refused(path, header) is not None) == refused


# ---- circles -------------------------------------------------------------------------------------

# The format is known (clang-format). In a C file, a line that begins with a letter and is not
# static defines the first name that is followed by ( [ = or ;. A macro or an inline function of a
# header stands for what its body uses.
NAME = re.compile(r"\b(?:wlmi?|WLMI?)_\w*")
TEXT = r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
BODY = re.compile(
    r"^#define (?P<macro>\w+)(?:[^\n]*\\\n)*[^\n]*"
    r"|^static inline [^\n(]*?(?P<inline>\w+)\((?:[^\n]*[;}]$|.*?^\})",
    re.M | re.S,
)


def without_text(code):
    """Code with a blank in the place of each comment, string and character."""
    return re.sub(rf'(^#include "[^"\n]*")|{TEXT}', lambda m: m[1] or " ", code, flags=re.M | re.S)


def defined(code):
    """The names that a C file defines for others: (name, whether it is a function)."""
    for line in re.findall(r"^(?!static |typedef |extern |enum |union )[A-Za-z].*", code, re.M):
        for name in NAME.finditer(line):
            behind = line[name.end() :].lstrip(" ")[:1]
            if line.startswith("struct ") and behind == "{":
                break
            if behind and behind in "([=;":
                yield name[0], behind == "("
                break


def uses_of(files):
    """For each file the files that it uses."""
    files = {path: without_text(text) for path, text in files.items()}
    places, bodies = {}, {}  # name: (file, whether it is a function); name: (body, is a function)
    for path, code in files.items():
        if path.endswith(".h"):
            for body in BODY.finditer(code):
                bodies[body["macro"] or body["inline"]] = body[0], bool(body["inline"])
        else:
            places.update((name, (path, is_function)) for name, is_function in defined(code))

    def used(code, seen):
        for name in NAME.finditer(code):
            key, rest = name[0], code[name.end() :][:40]
            _, is_function = bodies.get(key) or places.get(key) or (None, False)
            if is_function and re.match(r" *[\w*]|\)\{", rest):  # a type of this name
                continue
            if key in bodies and key not in seen:
                seen.add(key)
                yield from used(bodies[key][0], seen)
            elif key in places:
                yield places[key][0]

    return {
        path: (
            {h for h in re.findall(r'^#include "([^"]*)"', code, re.M) if h in files}
            if path.endswith(".h")
            else set(used(code, set()))
        )
        - {path}
        for path, code in files.items()
    }


A = "int wlmi_a(void) { return wlmi_b(); }\n"
A_BY_INLINE = "int wlmi_a(void) { return wlmi_i(); }\n"
CIRCLES = {
    "none": ({"a.c": A, "b.c": "int wlmi_b(void) {\n  return 1;\n}\n"}, ""),
    "two": ({"a.c": A, "b.c": "int wlmi_b(void) {\n  return wlmi_a();\n}\n"}, "a.c b.c"),
    "three": (
        {
            "a.c": A,
            "b.c": "int wlmi_b(void) { return wlmi_c[0](); }\n",
            "c.c": "int (*const wlmi_e)(void);\nwlmi_fn *const wlmi_c[] = {\n    wlmi_a,\n};\n",
            "d.c": "int wlmi_d(void) { return wlmi_a(); }\n",
        },
        "a.c b.c c.c",
    ),
    "by an inline function": (
        {
            "a.c": A_BY_INLINE,
            "a.h": "static inline int wlmi_i(void) {\n  return wlmi_b();\n}\nint wlmi_a(void);\n",
            "b.c": "int wlmi_b(void) { return wlmi_a(); }\n",
        },
        "a.c b.c",
    ),
    "by a macro": (
        {
            "a.c": "int wlmi_a(void) { return WLM_M(1); }\n",
            "b.h": "#define WLM_M(x) \\\n  wlmi_b(x)\nint wlmi_b(int);\n",
            "b.c": "int wlmi_b(int x) { return x + wlmi_a(); }\n",
        },
        "a.c b.c",
    ),
    "its own inline function": (
        {"a.c": A_BY_INLINE, "a.h": "static inline int wlmi_i(void) { return wlmi_a(); }\n"},
        "",
    ),
    "in a comment and a string": (
        {"a.c": A, "b.c": '/* wlmi_a() */\nint wlmi_b(void) { return *"\\"wlmi_a()"; }\n'},
        "",
    ),
    "a type of this name": (
        {
            "a.c": "void wlmi_a(int x) { wlmi_b(x); }\n",
            "b.c": "static void f(wlmi_a *a);\nvoid wlmi_b(int x) { wlmi_a y = (wlmi_a){0}; }\n",
        },
        "",
    ),
    "a static function": (
        {
            "a.c": "static int wlmi_x(void) { return wlmi_b(); }\n",
            "b.c": "int wlmi_b(void) { return wlmi_x(); }\n",
        },
        "",
    ),
    "headers": (
        {
            "a.h": '#include "b.h"\n',
            "b.h": '#include <c.h>\n#include "a.h"\n',
            "c.h": '#include "a.h"\n',
        },
        "a.h b.h",
    ),
}


@pytest.mark.parametrize(("files", "circle"), CIRCLES.values(), ids=CIRCLES)
def test_circles_are_found(files, circle):
    assert sorted(set(find_circle(uses_of(files)))) == circle.split()


def test_tree_has_no_circle():
    # exported/library/ defines functions of other files, for another library
    files = {
        path.removeprefix("include/"): text
        for path, text in c_files(ROOMS).items()
        if not path.startswith("exported/library/")
    }
    uses = uses_of(files)
    assert sum(len(used) for used in uses.values()) > 1500
    assert find_circle(uses) == []
