"""The command `python -m bench`: measures what needs torch, and reports all results."""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from bench.results_file import case_name, read_results


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _graphs(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _widths(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(","))


# What a suite does, and those of _OPTIONS that it takes.
_SUITES = {
    "torch": ("time warploom.torch and warploom.pyg beside PyTorch and PyG", "--no-compile"),
    "attention": ("time layers of attention beside PyG's", "--no-compile --unfused"),
    "messages": ("time messages beside PyG's propagate", "--no-compile --layers --graphs -n"),
    "scatter": ("time reductions by an index beside PyTorch's operators", ""),
    "jax": ("time training steps in JAX beside what JAX has", "--graphs"),
    "programs": ("time training steps of programs as users write them, beside PyG", ""),
    "batches": ("time training steps on mini-batches, from host memory on", "--no-compile"),
    "order": ("time steps in PyG's order of products and in the cheapest one", "--models --graphs"),
    "layers": ("time steps of PyG's layers beside PyG", "--layers --graphs --types"),
    "compiled": (
        "time eager, compiled and captured training steps",
        "--models --graphs --modes --limit",
    ),
    "gnn": (
        "GE-SpMM's applications: steps of GCN and GraphSAGE",
        "--accuracy --models --graphs",
    ),
    "accuracy": ("ES-SpMM's trade: inference that samples edges", "--sampled --train"),
    "budget": ("budgets of accuracy: what calibrate chooses, held against the test nodes", ""),
    "counters": ("GE-SpMM: load transactions and other counters, read by ncu", ""),
    "first_step": (
        "time the first steps of PyG's layers in new processes, beside PyG",
        "--layers --graphs --modes",
    ),
    "distributed": (
        "time training steps on one device and on all ranks of torchrun",
        "--models --graphs --split --ranks --calculate",
    ),
}
_MODULES = {
    "torch": "suite",
    "jax": "jax_steps",
}  # of bench.pytorch, where a suite has another name


def _other(module: str, text: str) -> dict[str, Any]:
    """An option by which another module or suite runs."""
    return {"action": "store_const", "dest": "module", "const": module, "help": text}


# An option sets the field of its name in the suite's settings.
_OPTIONS: dict[str, dict[str, Any]] = {
    "--no-compile": {
        "action": "store_false",
        "dest": "compiled",
        "default": None,
        "help": "leave out torch.compile",
    },
    "--unfused": {
        "action": "store_true",
        "default": None,
        "help": "compute the scores of TransformerConv apart, for comparison",
    },
    "--layers": {"type": _names, "help": "such as gine,fa or GCN,FiLM; by default all"},
    "--models": {"type": _names, "help": "such as gcn,sage-mean; by default all"},
    "--modes": {"type": _names, "help": "such as eager,captured or later,wait; by default all"},
    "--types": {"type": _names, "help": "such as f32,f16,bf16,autocast; by default f32"},
    "--graphs": {"type": _graphs, "help": "such as 'cora twin:arxiv', separated by spaces"},
    "-n": {"type": _widths, "dest": "widths", "help": "columns, such as 64,128"},
    "--limit": {"type": float, "help": "seconds in which a model must be compiled; 120"},
    "--split": {
        "type": _names,
        "dest": "splits",
        "help": "as of PartitionedGraph.from_edge_index, such as auto,rows; by default auto",
    },
    "--ranks": {"type": _widths, "help": "such as 2,4: the first ones; by default all"},
    "--sampled": {
        "type": Path,
        "help": "a results file of 'warploom bench sampled', for cuSPARSE's best times",
    },
    "--accuracy": _other("gnn:ACCURACY", "compare accuracies with PyG's; times nothing"),
    "--train": _other("accuracy:TRAINING", "train with sampled edges, beside exact training"),
    "--calculate": _other(
        "step_model", "measure nothing: write what the model of a step expects on several GPUs"
    ),
}


def _add_suite(commands: Any, name: str) -> None:
    """Add a command that measures cases, with the options that all such commands share."""
    text, options = _SUITES[name]
    command = commands.add_parser(name, help=text)
    add = command.add_argument
    add("--out", type=Path, help="append lines to this file and skip the cases that it has")
    add("--data", type=Path, default=Path("../shared/data"), help="folder with the graphs")
    only = "cases with this text in their names (see --list); repeatable"
    add("--only", action="append", default=[], help=only)
    budget = "start no case after this many seconds"
    add("--budget", type=float, default=float("inf"), help=budget)
    add("--samples", type=int, help="of each time; 7")
    add("--list", action="store_true", help="print the cases and run none")
    add("--quick", action="store_true", help="a few tiny cases")
    add("--warploom", dest="command", help="the program that writes twins which --data lacks")
    add("--twins", type=Path, help="keep twins in this folder for the next run")
    for option in options.split():
        add(option, **_OPTIONS[option])
    command.set_defaults(do=_run, module=_MODULES.get(name, name))


def _add_reports(commands: Any) -> None:
    summary = commands.add_parser(
        "summary",
        help="print the means and worst cases of a results file, also one of 'warploom bench'; "
        "exit with 1 where a target of a torch benchmark is missed",
    )
    summary.add_argument("file", type=Path)
    summary.add_argument("--json", action="store_true")
    summary.set_defaults(do=_summary)
    plot = commands.add_parser(
        "plot",
        help="draw the speed-ups of suite core over cuSPARSE, or a sampling that calibrate saved",
    )
    plot.add_argument("file", type=Path)
    to = {"metavar": "PREFIX", "help": "to PREFIX.svg and PREFIX.png"}
    plot.add_argument("-o", dest="prefix", required=True, **to)
    plot.set_defaults(do=_plot)
    report = commands.add_parser("report", help="write an HTML report of a database")
    results = "of bench core or compare --json, for the verdict"
    report.add_argument("results", nargs="*", type=Path, help=results)
    sampling = "a setting that warploom.torch.calibrate saved; repeatable"
    report.add_argument("--sampling", type=Path, action="append", default=[], help=sampling)
    report.add_argument("-o", dest="output", metavar="FILE", required=True, help="- for stdout")
    database = report.add_mutually_exclusive_group()
    database.add_argument("--db", help="the database; by default that of the user")
    database.add_argument("--system", action="store_true", help="the shipped database")
    report.add_argument("--device", help="any part of the name of a device class")
    report.add_argument("--warploom", default="warploom", help="the program that reads databases")
    report.set_defaults(do=_report)
    tables = commands.add_parser("tables", help="print a results file as Markdown tables")
    tables.add_argument("file", type=Path)
    into = "put them into this page, below '<!-- tables: NAME -->'"
    tables.add_argument("--into", type=Path, help=into)
    tables.set_defaults(do=_tables)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in _SUITES:
        _add_suite(commands, name)
    _add_reports(commands)
    return parser


def _settings(suite: Any, options: argparse.Namespace) -> Any:
    """The settings of a suite with what the options give, also where --quick has other values."""
    from bench.pytorch.cases import Settings

    found = {field.name: vars(options).get(field.name) for field in fields(Settings)}
    given = {name: value for name, value in found.items() if value is not None}
    return suite.settings(**(suite.quick if options.quick else {}) | given)


def _run(options: argparse.Namespace) -> int:
    from bench.pytorch.cases import Output

    name, _, which = options.module.partition(":")
    module: Any = importlib.import_module(f"bench.pytorch.{name}")
    if name == "step_model":
        return int(module.run(options.out) > 0)
    suite = getattr(module, which or "SUITE")
    settings = _settings(suite, options)
    output = Output(options.out, options.budget, tuple(options.only))
    if options.list:
        print("\n".join(filter(output.wants, map(case_name, suite.cases(settings)))))
        return 0
    return int(suite.run(settings, output) > 0)


def _summary(options: argparse.Namespace) -> int:
    from bench.reports.columns import as_markdown
    from bench.reports.summary import as_json, summarise

    summary, missed = summarise(options.file, read_results(options.file))
    print((as_json if options.json else as_markdown)(summary))
    return int(missed > 0)


def _tables(options: argparse.Namespace) -> int:
    from bench.reports.tables import put_tables, tables_of

    if options.into is None:
        print(tables_of(options.file))
    else:
        put_tables(options.file, options.into)
    return 0


def _plot(options: argparse.Namespace) -> int:
    from bench.reports.plot import draw

    draw(options.file, options.prefix)
    return 0


def _report(options: argparse.Namespace) -> int:
    from bench.reports.report import report

    where = ["--db", options.db] if options.db else ["--system"] if options.system else []
    given = options.results, options.sampling
    report(options.warploom, where, options.device, *given, options.output)
    return 0


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return int(options.do(options))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as error:
        sys.exit(f"warploom: bench: there is no {error.name}; pip install '.[reports,pyg]'")
    except (OSError, ValueError) as error:
        sys.exit(f"warploom: bench: {error}")
