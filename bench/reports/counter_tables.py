"""Tables of hardware counters, with the figures of the GE-SpMM paper beside them."""

from __future__ import annotations

from bench.markdown import Cell, markdown
from bench.results_file import Line

NAMES = {
    "algorithm1": "Algorithm 1",
    "crc": "CRC",
    "cwm2": "CWM 2",
    "cwm4": "CWM 4",
    "cwm8": "CWM 8",
    "cusparse": "cuSPARSE",
}
# Tables V and VI at N = 512 on a GTX 1080 Ti: transactions of 32 bytes, efficiency in percent.
PAPER = {
    (16384, "algorithm1"): "1.34e+08, 68.95 %",
    (16384, "crc"): "0.55e+08, 92.40 %",
    (65536, "algorithm1"): "5.36e+08, 68.95 %",
    (65536, "crc"): "2.18e+08, 92.40 %",
    (65536, "cwm2"): "1.93e+08",
    (65536, "cwm4"): "1.80e+08",
    (65536, "cwm8"): "1.74e+08",
    (262144, "algorithm1"): "21.47e+08, 68.95 %",
    (262144, "crc"): "8.73e+08, 92.39 %",
}


def counter_table(lines: list[Line]) -> str:
    rows: list[list[Cell]] = []
    for line in lines:
        for key, name in NAMES.items():
            row: list[Cell] = [line["matrix"], line["n"], name]
            sectors = line["load_sectors"][key]
            row.append(None if sectors is None else f"{sectors:.2e}")
            row += [
                None if line[field][key] is None else f"{line[field][key]:.1f}"
                for field in ("load_efficiency", "load_gbs", "l2_gbs", "dram_gbs", "occupancy")
            ]
            registers = line["registers"][key]
            row.append(None if registers is None else int(registers))
            row.append(PAPER.get((line["rows"], key)) if line["n"] == 512 else None)
            rows.append(row)
    head = ["matrix", "N", "kernel", "load transactions", "efficiency, %", "loads, GB/s"]
    head += ["L2, GB/s", "DRAM, GB/s", "occupancy, %", "registers", "paper"]
    return markdown(head, rows)
