"""What pages for students and instructors share: everything is escaped, and each says what its marks are worth."""

import functools
import html
import unicodedata
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, metadata

from attnlib.marking.assignment import NOTEBOOKS

STYLE = """:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;overflow-wrap:anywhere}
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2rem}
pre{white-space:pre-wrap;border-left:.25rem solid;padding-left:.75rem}
.wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse}caption{text-align:left;font-weight:bold}
th,td{border-bottom:1px solid;padding:.4rem .6rem;text-align:left;vertical-align:top}
thead th{overflow-wrap:normal}
img{max-width:100%;height:auto;background:#fff}.unsafe{border:.25rem double;padding:.5rem;font-weight:bold}
@media(max-width:45rem){.stack thead{position:absolute;width:1px;overflow:hidden;clip-path:inset(50%)}
.stack :is(table,tbody,tr,th,td,caption){display:block}
.stack :is(th,td){border:0;padding:.1rem 0}.stack tr{border-bottom:1px solid;padding:.5rem 0}.stack td:empty{display:none}
.stack td::before{content:attr(data-head)": "}}"""
KEPT = "\n\t\u200c\u200d"  # line ends, and the joiners that some languages spell with


def escaped(text: object) -> str:
    """Text for HTML, without control characters, marks that turn the direction of text, and halves of characters."""
    seen = (c for c in str(text) if c in KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp"))
    return html.escape("".join(seen))


def named(text: object) -> str:
    """A name that may be written from right to left, kept from changing the order of what is around it."""
    return f"<bdi>{escaped(text)}</bdi>"


def stamp(entries: list[dict]) -> str:
    """Which sandbox marks come from, what is unsafe first; with the number of submissions if there are several."""
    counts = Counter(entry["sandbox"] for entry in entries)
    labels = sorted(counts, key=lambda label: (not label.startswith("UNSAFE"), label))
    if len(labels) == 1:
        return labels[0]
    return "; ".join(f"{label} ({counts[label]} of {len(entries)} submissions)" for label in labels)


def page(title: str, body: str, sandbox: str, heading: str = "") -> str:
    """A whole page: no scripts, nothing from elsewhere, and which sandbox the marks come from.

    Parameters
    ----------
    title, sandbox : text
    body, heading : HTML; the heading is the title, if left out
    """
    safe = not sandbox.startswith("UNSAFE")
    how = f"<p>Each answer was run on inputs drawn anew ({escaped(sandbox)}).</p>"
    how = how if safe else f'<p class="unsafe">{escaped(sandbox)}</p>'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{escaped(title)}</title><style>{STYLE}</style></head>'
        f"<body><main><h1>{heading or escaped(title)}</h1>\n{how}\n{body}\n</main></body>"
        "</html>\n"
    )


def table(caption: str, heads: list[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; cells are HTML already, heads and caption are text.

    On a phone each row of more than two cells is a block. The roles tell a screen reader that it is a table even then.
    """
    top = "".join(f'<th scope="col" role="columnheader">{escaped(head)}</th>' for head in heads)
    lines = []
    for first, *others in rows:
        cells = "".join(
            f'<td role="cell" data-head="{escaped(head)}">{cell}</td>' for head, cell in zip(heads[1:], others)
        )
        lines.append(f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{cells}</tr>')
    if not lines:
        return f"<p><strong>{escaped(caption)}:</strong> none.</p>"
    body = "\n".join(lines)
    kind = "wide stack" if len(heads) > 2 else "wide"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escaped(caption)}"><table role="table">'
        f'<caption>{escaped(caption)}</caption><thead role="rowgroup"><tr role="row">{top}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


@functools.cache
def section(lesson: str, name: str) -> str:
    """A link to the section of the lesson that treats an exercise."""
    try:
        urls = metadata("attnlib").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    address = next((url.split(", ")[1] for url in urls if url.startswith("Repository")), "")
    file = next((path.name for path in NOTEBOOKS.glob("*.ipynb") if path.name.startswith(f"{lesson}_")), "")
    words = f"Lesson {escaped(lesson)}, section “Exercise: {breakable(name)}”"
    return f'<a href="{escaped(f"{address}/blob/main/notebooks/{file}")}">{words}</a>' if address else words


def breakable(name: str) -> str:
    """The name of an exercise, which a narrow screen may break after an underscore."""
    return escaped(name).replace("_", "_<wbr>")
