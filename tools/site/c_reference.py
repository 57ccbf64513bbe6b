"""Makes a page of a C header: its sections, and each declaration below its comment.

A comment at the margin belongs to the declarations that follow it without an empty line. Lines of a
comment that are indented keep their form; all others are running text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from textwrap import dedent

SECTION = re.compile(r"/\* -{4} (.*?) -{4,} \*/")
NAME = re.compile(
    r"\b(wlm_\w+)(?= *\(| *;| *$)|#define (WLM_\w+)|^(?:typedef )?(?:enum|struct) (wlm_\w+)"
)
HIDDEN = re.compile(r"#(ifn?def|if|endif|else|elif|include|undef)\b|#define (WARPLOOM_|WLM_API)")


def prose(comment: str, links: dict[str, str]) -> str:
    """The text of a comment as Markdown; `links` has the addresses of declared names."""
    lines = re.sub(r"^/\* ?|\s*\*/$", "", comment.strip()).split("\n")
    lines = [re.sub(r"^ ?\* ?", "", line) if number else line for number, line in enumerate(lines)]
    out: list[str] = []
    for is_form, part in groupby(lines, lambda line: line.startswith("  ")):
        if is_form:
            out.append("```text\n" + dedent("\n".join(part)) + "\n```")
        else:
            escaped = re.sub(r"([*_\[\]#`])", r"\\\1", "\n".join(part))
            out.append(escaped.replace("<", "&lt;").replace(">", "&gt;"))
    text = re.sub(r"\n```\n\s*\n```text\n", "\n\n", "\n\n".join(out))
    form = re.compile(
        r"(?P<form>```text\n.*?\n```)|docs/(?P<page>[\w-]+)\.md"
        r"|(?P<name>\bwlm(?:\\_\w+)+(?:\.\w+)?|\bWLM(?:\\_\w+)+)",
        re.S,
    )

    def linked(found: re.Match[str]) -> str:
        if found["form"]:
            return found["form"]
        if found["page"]:
            return f"[{found['page']}]({found['page']}.md)"
        name = found["name"].replace("\\", "")
        to = links.get(name.partition(".")[0])
        return f"[`{name}`]({to})" if to else f"`{name}`"

    return form.sub(linked, text)


def blocks(text: str) -> Iterator[str]:
    """The comments and declarations of a header, one after the other; an empty one ends a group."""
    lines = iter(text.split("\n"))
    for line in lines:
        block = [line]
        if line.startswith("/*"):
            while "*/" not in block[-1]:
                block.append(next(lines))
        elif line.strip():
            while block[-1].endswith("\\"):
                block.append(next(lines))
            while depth(block) or not (line[0] == "#" or re.search(r";\s*(/\*.*)?$", block[-1])):
                block.append(next(lines))
            while "/*" in block[-1] and "*/" not in block[-1]:
                block.append(next(lines))
        yield "\n".join(block)


def depth(block: list[str]) -> int:
    """How many braces are open; those in comments and macros do not count."""
    code = re.sub(r"/\*.*?(\*/|$)", "", "\n".join(block), flags=re.S)
    return 0 if code.startswith("#") else code.count("{") - code.count("}")


def name_of(block: str) -> str | None:
    """What a declaration declares."""
    code = re.sub(r"/\*.*?\*/", "", block, flags=re.S)
    code = re.sub(r"\{.*\}", "", code, flags=re.S)
    found = NAME.search(code)
    return next(name for name in found.groups() if name) if found else None


def page(header: Path, links: dict[str, str]) -> str:
    """The page of a header, as Markdown; adds the names that it declares to `links`."""
    address = header.name.replace(".", "-") + ".md"
    out = [f"# {header.name}", "", "Generated from the header, which is the reference."]
    names: list[str] = []  # of the group, whose heading stands before its comment
    comment = ""
    code: list[str] = []

    def flush() -> None:
        nonlocal comment
        if code:
            out.append(f"### {names[0]}" if names else "")
            out.extend(f'<a id="{name.lower()}"></a>' for name in names[1:])
            links.update((name, f"{address}#{name.lower()}") for name in names)
        if comment:
            out.append(prose(comment, links))
        if code:
            out.append("\n".join(["```c", *code, "```"]))
        comment = ""
        names.clear()
        code.clear()

    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", header.read_text(), flags=re.S)
    for block in blocks(text):
        section = SECTION.match(block)
        if section:
            flush()
            out.append(f"## {section[1][0].upper()}{section[1][1:]}")
        elif block.startswith("/*"):
            flush()
            comment = block
        elif not block.strip():
            flush()
        elif not HIDDEN.search(block.split("\n")[0]):
            if (name := name_of(block)) and name not in names:
                names.append(name)
            code.append(block)
    flush()
    return "\n\n".join(part for part in out if part) + "\n"
