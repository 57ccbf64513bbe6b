"""The command: python -m warploom.bench torch | attention | summary."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path


def _add_options(suite: argparse.ArgumentParser) -> None:
    suite.add_argument(
        "--out", type=Path, help="append lines to this file and skip the cases that it has"
    )
    suite.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder with the graphs"
    )
    suite.add_argument(
        "--warploom", default="warploom", help="the program that writes twins which --data lacks"
    )
    suite.add_argument(
        "--only",
        action="append",
        default=[],
        help="cases with this text: step/cora, graphed; repeatable",
    )
    suite.add_argument(
        "--budget", type=float, default=float("inf"), help="start no case after this many seconds"
    )
    suite.add_argument("--samples", type=int, default=7)
    suite.add_argument(
        "--no-compile", action="store_true", help="leave out torch.compile of gather and scatter"
    )
    suite.add_argument("--list", action="store_true", help="print the cases and run none")
    suite.add_argument("--quick", action="store_true", help="a few tiny cases")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m warploom.bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("torch", "time warploom.torch and warploom.pyg beside PyTorch and PyG"),
        ("attention", "time layers of attention on warploom and in PyG"),
    ):
        _add_options(commands.add_parser(name, help=text))
    summary = commands.add_parser(
        "summary", help="print geometric means and targets; exit with 1 where one is missed"
    )
    summary.add_argument("file", type=Path)
    options = parser.parse_args(arguments)
    if options.command == "summary":
        from warploom.bench.summary import print_summary

        return int(print_summary(options.file) > 0)

    from warploom.bench import attention
    from warploom.bench.suite import Settings, cases, quick, run

    settings = Settings(
        data=options.data,
        command=options.warploom,
        only=tuple(options.only),
        budget=options.budget,
        samples=options.samples,
        compiled=not options.no_compile,
    )
    settings = quick(settings) if options.quick else settings
    if options.command == "attention":
        if not options.quick:
            settings = replace(settings, graphs=attention.GRAPHS)
        if options.list:
            print("\n".join(case.name() for case in attention.cases(settings)))
            return 0
        return int(attention.run(settings, options.out) > 0)
    if options.list:
        print("\n".join(case.name() for case in cases(settings)))
        return 0
    return int(run(settings, options.out) > 0)


if __name__ == "__main__":
    sys.exit(main())
