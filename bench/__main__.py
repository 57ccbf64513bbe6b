"""The command `python -m bench`: measures what needs torch, and reports all results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.results_file import case_name, read_results

if TYPE_CHECKING:
    from bench.pytorch.cases import Output


def _add_run(commands: Any, name: str, help: str) -> Any:
    """Add a command that measures cases, with the options that all such commands share."""
    command = commands.add_parser(name, help=help)
    command.add_argument(
        "--out", type=Path, help="append lines to this file and skip the cases that it has"
    )
    command.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder with the graphs"
    )
    command.add_argument(
        "--only",
        action="append",
        default=[],
        help="cases with this text in their names (see --list); repeatable",
    )
    command.add_argument(
        "--budget", type=float, default=float("inf"), help="start no case after this many seconds"
    )
    command.add_argument("--samples", type=int, default=7)
    command.add_argument("--list", action="store_true", help="print the cases and run none")
    command.add_argument("--quick", action="store_true", help="a few tiny cases")
    return command


def _add_program(command: Any) -> None:
    command.add_argument(
        "--warploom", default="warploom", help="the program that writes twins which --data lacks"
    )


def _add_twins(command: Any) -> None:
    _add_program(command)
    command.add_argument("--twins", type=Path, help="keep twins in this folder for the next run")


def _add_reports(commands: Any) -> None:
    summary = commands.add_parser(
        "summary",
        help="print the means and worst cases of a results file, also one of 'warploom bench'; "
        "exit with 1 where a target of a torch benchmark is missed",
    )
    summary.add_argument("file", type=Path)
    summary.add_argument("--json", action="store_true", help="for files of 'warploom bench'")
    plot = commands.add_parser("plot", help="draw the speed-ups of suite core over cuSPARSE")
    plot.add_argument("file", type=Path)
    plot.add_argument(
        "-o", dest="prefix", metavar="PREFIX", required=True, help="to PREFIX.svg and PREFIX.png"
    )
    report = commands.add_parser("report", help="write an HTML report of a database")
    report.add_argument(
        "results",
        nargs="*",
        type=Path,
        help="of bench core or compare --json, for the verdict",
    )
    report.add_argument("-o", dest="output", metavar="FILE", required=True, help="- for stdout")
    database = report.add_mutually_exclusive_group()
    database.add_argument("--db", help="the database; by default that of the user")
    database.add_argument("--system", action="store_true", help="the shipped database")
    report.add_argument("--device", help="any part of the name of a device class")
    report.add_argument("--warploom", default="warploom", help="the program that reads databases")
    tables = commands.add_parser("tables", help="print a results file as Markdown tables")
    tables.add_argument("file", type=Path)
    tables.add_argument(
        "--into", type=Path, help="put them into this page, below '<!-- tables: NAME -->'"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    torch = _add_run(
        commands, "torch", "time warploom.torch and warploom.pyg beside PyTorch and PyG"
    )
    attention = _add_run(commands, "attention", "time layers of attention beside PyG's")
    for command in (torch, attention):
        _add_program(command)
        command.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    attention.add_argument(
        "--unfused",
        action="store_true",
        help="compute the scores of TransformerConv apart, for comparison",
    )
    messages = _add_run(commands, "messages", "time messages beside PyG's propagate")
    _add_twins(messages)
    messages.add_argument("--no-compile", action="store_true", help="leave out torch.compile")
    messages.add_argument("--layers", help="such as gine,fa; by default all")
    messages.add_argument("--graphs", help="such as 'cora pubmed', separated by spaces")
    messages.add_argument("-n", dest="widths", help="columns, such as 64,128")
    layers = _add_run(commands, "layers", "time steps of PyG's layers beside PyG")
    _add_twins(layers)
    layers.add_argument("--layers", help="such as GCN,FiLM; by default all")
    layers.add_argument("--graphs", help="such as 'cora twin:arxiv', separated by spaces")
    layers.add_argument("--types", default="f32", help="such as f32,f16,bf16,autocast")
    compiled = _add_run(commands, "compiled", "time eager, compiled and captured training steps")
    _add_twins(compiled)
    compiled.add_argument("--models", help="such as gcn,sage-max; by default all")
    compiled.add_argument("--graphs", help="such as 'cora twin:arxiv', separated by spaces")
    compiled.add_argument("--modes", help="such as eager,captured; by default all")
    compiled.add_argument(
        "--limit", type=float, default=120.0, help="seconds in which a model must be compiled"
    )
    gnn = _add_run(commands, "gnn", "GE-SpMM's applications: steps of GCN and GraphSAGE")
    gnn.add_argument(
        "--accuracy", action="store_true", help="compare accuracies with PyG's; times nothing"
    )
    accuracy = _add_run(commands, "accuracy", "ES-SpMM's trade: inference that samples edges")
    _add_twins(accuracy)
    accuracy.add_argument(
        "--sampled",
        type=Path,
        help="a results file of 'warploom bench sampled', for cuSPARSE's best times",
    )
    accuracy.add_argument(
        "--train", action="store_true", help="train with sampled edges, beside exact training"
    )
    first = _add_run(
        commands, "first_step", "time first training steps in new processes, beside third ones"
    )
    first.add_argument("--graphs", help="such as 'cora pubmed', separated by spaces")
    shared = _add_run(
        commands, "distributed", "time training steps on one device and on all ranks of torchrun"
    )
    _add_twins(shared)
    shared.add_argument("--models", help="such as gcn,sage-mean; by default all")
    shared.add_argument("--graphs", help="such as 'twin:products', separated by spaces")
    shared.add_argument("--split", default="auto", help="as of PartitionedGraph.from_edge_index")
    shared.add_argument(
        "--calculate",
        action="store_true",
        help="measure nothing: write what the model of a step expects on several GPUs",
    )
    _add_reports(commands)
    return parser


def _print_names(cases: Iterable[Any]) -> int:
    print("\n".join(case_name(case) for case in cases))
    return 0


def _run_torch(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import attention, suite
    from warploom.torch import _attention

    settings = suite.Settings(
        data=options.data,
        command=options.warploom,
        samples=options.samples,
        compiled=not options.no_compile,
    )
    which: Any = suite
    if options.command == "attention":
        settings, which = attention.full(settings), attention
        if options.unfused:
            _attention.fused = False
    settings = suite.quick(settings) if options.quick else settings
    if options.list:
        return _print_names(which.cases(settings))
    return int(which.run(settings, output))


def _on_graphs(settings: Any, options: argparse.Namespace) -> Any:
    """The settings with the graphs of --graphs, if it is given."""
    if options.graphs is None:
        return settings
    return replace(settings, graphs=tuple(options.graphs.split()))


def _run_messages(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import messages

    settings = messages.Settings(
        data=options.data,
        command=options.warploom,
        twins=options.twins,
        samples=options.samples,
        compiled=not options.no_compile,
    )
    settings = messages.quick(settings) if options.quick else settings
    settings = messages.choose(_on_graphs(settings, options), options.layers, options.widths)
    if options.list:
        return _print_names(messages.cases(settings))
    return messages.run(settings, output)


def _run_layers(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import layers

    settings = layers.Settings(options.data, options.warploom, options.twins, options.samples)
    settings = layers.quick(settings) if options.quick else settings
    settings = layers.choose(_on_graphs(settings, options), options.layers, options.types)
    if options.list:
        return _print_names(layers.cases(settings))
    return layers.run(settings, output)


def _run_compiled(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import compiled

    settings = compiled.Settings(
        options.data, options.warploom, options.twins, options.samples, limit=options.limit
    )
    settings = compiled.quick(settings) if options.quick else settings
    settings = compiled.choose(_on_graphs(settings, options), options.models, options.modes)
    if options.list:
        return _print_names(compiled.cases(settings))
    return compiled.run(settings, output)


def _run_gnn(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import gnn

    settings = gnn.Settings(data=options.data, samples=options.samples)
    settings = gnn.quick(settings) if options.quick else settings
    if options.list:
        return _print_names((gnn.accuracy_cases if options.accuracy else gnn.cases)(settings))
    return (gnn.run_accuracies if options.accuracy else gnn.run)(settings, output)


def _run_accuracy(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import accuracy, sampled_training

    settings = accuracy.Settings(
        options.data, options.warploom, options.twins, options.samples, sampled=options.sampled
    )
    if options.train:
        settings = sampled_training.default_settings(settings)
    settings = accuracy.quick(settings) if options.quick else settings
    if options.list:
        return _print_names((sampled_training if options.train else accuracy).cases(settings))
    return (sampled_training.run if options.train else accuracy.run)(settings, output)


def _run_first_step(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import first_step

    settings = first_step.Settings(options.data, options.samples)
    settings = first_step.quick(settings) if options.quick else settings
    settings = _on_graphs(settings, options)
    if options.list:
        return _print_names(first_step.cases(settings))
    return first_step.run(settings, output)


def _run_distributed(options: argparse.Namespace, output: Output) -> int:
    from bench.pytorch import distributed, step_model

    if options.calculate:
        return step_model.run(options.out)
    settings = distributed.Settings(
        options.data, options.warploom, options.twins, options.samples, split=options.split
    )
    settings = distributed.quick(settings) if options.quick else settings
    settings = distributed.choose(_on_graphs(settings, options), options.models)
    if options.list:
        return _print_names(distributed.cases(settings))
    return distributed.run(settings, output)


def _summary(options: argparse.Namespace) -> int:
    lines = read_results(options.file)
    if lines and "suite" not in lines[0]:
        from bench.pytorch.summary import print_summary

        return int(print_summary(lines) > 0)
    from bench.reports.summary import as_json, as_markdown, summarise

    print((as_json if options.json else as_markdown)(summarise(options.file, lines)))
    return 0


def _tables(options: argparse.Namespace) -> int:
    from bench.pytorch.tables import put_tables, tables_of

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
    report(options.warploom, where, options.device, options.results, options.output)
    return 0


_REPORTS = {"summary": _summary, "tables": _tables, "plot": _plot, "report": _report}
_RUNS = {
    "torch": _run_torch,
    "attention": _run_torch,
    "messages": _run_messages,
    "layers": _run_layers,
    "compiled": _run_compiled,
    "gnn": _run_gnn,
    "accuracy": _run_accuracy,
    "first_step": _run_first_step,
    "distributed": _run_distributed,
}


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.command in _REPORTS:
        return _REPORTS[options.command](options)
    from bench.pytorch.cases import Output

    output = Output(options.out, options.budget, tuple(options.only))
    return int(_RUNS[options.command](options, output) > 0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ModuleNotFoundError as error:
        sys.exit(f"warploom: bench: there is no {error.name}; pip install '.[reports,pyg]'")
    except (OSError, ValueError) as error:
        sys.exit(f"warploom: bench: {error}")
