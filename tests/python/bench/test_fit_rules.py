"""tools/fit_rules: the rules that it finds in measurements."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[3] / "tools" / "fit_rules"
ROW = "row_vec/lanes=8,vector=4,batch=4"
MERGE = "merge_path/items=256,lanes=8,vector=4,batch=4,prepared=0"


def rules_of(path: Path, times: dict[int, dict[str, int]], *options: str) -> str:
    """Return what the tool prints of matrices with these longest rows and times in ps."""
    with path.open("w", encoding="utf-8") as file:
        for number, (longest, of) in enumerate(times.items()):
            for variant, time in of.items():
                line = {
                    "clock": "hot",
                    "failed": False,
                    "problem": "op=mul.sum,dense=f32,rowptr=i32,colind=i32,values=f32,sample=none",
                    "n": 32,
                    "matrix_name": f"matrix {number}",
                    "fingerprint": f"{number:032x}",
                    "device_processors": 132,
                    "rows": 10000,
                    "nnz": 100000 + number,
                    "longest": longest,
                    "cv": 1.0,
                    "variant": variant,
                    "time_ps": time,
                }
                file.write(json.dumps(line) + "\n")
    command = [sys.executable, str(TOOL), str(path), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_bound_separates_long_rows(tmp_path: Path) -> None:
    short = {longest: {ROW: 100, MERGE: 150} for longest in range(20, 40)}
    long = {longest: {ROW: 900, MERGE: 200} for longest in range(3000, 3020)}
    printed = rules_of(tmp_path / "tuned.jsonl", short | long)
    first, second = (line for line in printed.splitlines() if "WLMI_TARGET_CUDA" in line)
    assert '"row_vec/lanes=128/@,vector=@,batch=4"' in first
    assert 40 <= int(first.split(",")[5]) < 3000
    assert '"merge_path/items=256,lanes=128/@,vector=@,batch=4,prepared=0"' in second
    assert second.split(",")[5].strip() == "ANY"
    assert "fitted: n = 32, 40 real cases 1.000x, worst 1.00x" in printed
    assert "left out: n = 32, 40 real cases 1.000x, worst 1.00x" in printed


def test_whole_rows_need_a_bound(tmp_path: Path) -> None:
    """A kernel that waits for the longest row is not chosen without a bound, even if it won."""
    times = {longest: {ROW: 100, MERGE: 110} for longest in range(20, 40)}
    printed = rules_of(tmp_path / "tuned.jsonl", times, "--depth", "0")
    assert "row_vec" not in printed
    assert "fitted: n = 32, 20 real cases 1.100x, worst 1.10x" in printed


def test_files_without_such_measurements_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tuned.jsonl"
    path.write_text('{"warploom":"tuned","version":1}\n', encoding="utf-8")
    command = [sys.executable, str(TOOL), str(path)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 2
    assert "no measurement of such problems" in result.stderr
