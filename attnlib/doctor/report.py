"""What an examination found, as data, as text and as HTML."""

import textwrap
from dataclasses import asdict, dataclass, field, replace
from html import escape

from attnlib.doctor.faults import FAULTS, LESSONS


def lesson_text(number: int) -> str:
    """A lesson as it is written in a report: ``lesson 04 (Masks and batches)``."""
    return f"lesson {number:02d} ({LESSONS[number]})"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    ``fault`` names it, ``probe`` says what was tried, ``severity`` is "fault" (wrong in any attention) or "warning"
    (usually wrong), ``seen`` gives the numbers, ``meaning`` what they usually mean, ``lesson`` the number of the lesson
    that explains it.
    """

    fault: str
    probe: str
    severity: str
    seen: str
    meaning: str
    lesson: int


@dataclass(frozen=True)
class Passed:
    """A probe that found nothing wrong, and what it measured."""

    probe: str
    seen: str


@dataclass(frozen=True)
class NotExamined:
    """A probe that could not be made, why, and what would make it possible."""

    probe: str
    reason: str
    remedy: str


def found(fault: str, probe: str, seen: str, meaning: str = "") -> Finding:
    """A finding with what `FAULTS` knows of it; ``meaning`` takes the place of the usual one."""
    known = FAULTS[fault]
    return Finding(fault, probe, known.severity, seen, meaning or known.meaning, known.lesson)


@dataclass
class Report:
    """The result of an examination: print it, show it in a notebook, or read its lists.

    Attributes
    ----------
    name : str
        What was examined.
    findings : list of Finding
        What is wrong; the first is the one to mend first. Empty if nothing is.
    passed : list of Passed
    not_examined : list of NotExamined
    assumed : list of str
        What the doctor took for granted: shapes, the convention of a mask, whether the layer is causal.
    """

    name: str
    findings: list[Finding] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    not_examined: list[NotExamined] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """True if nothing was found (see `not_examined` for what was not looked at)."""
        return not self.findings

    def sort(self) -> "Report":
        """Put causes before symptoms, once each."""
        order = list(FAULTS)
        unique: dict[str, Finding] = {}
        for finding in self.findings:
            first = unique.setdefault(finding.fault, finding)
            if finding.seen not in first.seen:
                unique[finding.fault] = replace(first, seen=f"{first.seen}. Also ({finding.probe}): {finding.seen}")
        self.findings = sorted(unique.values(), key=lambda finding: order.index(finding.fault))
        return self

    def verdict(self) -> str:
        """One sentence: how much was found, passed and not examined."""
        count = len(self.findings)
        what = "nothing wrong found" if not count else f"{count} finding{'s' * (count > 1)}"
        return f"{self.name}: {what}; {len(self.passed)} probes passed, {len(self.not_examined)} not made."

    def gathered(self) -> list[list[str]]:
        """What was not examined, with the probes that share a reason and a remedy on one line."""
        probes: dict[tuple[str, str], list[str]] = {}
        for item in self.not_examined:
            probes.setdefault((item.reason, item.remedy), []).append(item.probe)
        return [["; ".join(names), *why] for why, names in probes.items()]

    def to_dict(self) -> dict:
        """All of it as plain lists and dicts, ready for json."""
        return {"healthy": self.healthy, "verdict": self.verdict()} | asdict(self)

    def __str__(self) -> str:
        lines = [self.verdict()]
        for number, finding in enumerate(self.findings, 1):
            lines += [
                "",
                f"{number}. {finding.severity.upper()}: {finding.fault}",
                *wrapped(f"Seen: {finding.seen}"),
                *wrapped(f"Usually: {finding.meaning}"),
                *wrapped(f"Explained in {lesson_text(finding.lesson)}."),
            ]
        for title, items in (
            ("Passed", [f"{item.probe}: {item.seen}" for item in self.passed]),
            ("Not examined", [f"{probes}: {reason} {remedy}" for probes, reason, remedy in self.gathered()]),
            ("Assumed", self.assumed),
        ):
            if items:
                lines += ["", f"{title}:", *(line for item in items for line in wrapped(f"- {item}", "     "))]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sections = [f"<section class='attnlib-doctor'>{STYLE}<h3>Examination of {escape(self.name)}</h3>"]
        sections.append(f"<p>{escape(self.verdict())}</p>")
        rows = [
            [f"{n}. {f.severity}: {f.fault}", f.seen, f.meaning, lesson_text(f.lesson)]
            for n, f in enumerate(self.findings, 1)
        ]
        sections.append(table("Findings", ["what", "seen", "usually means", "explained in"], rows))
        sections.append(table("Passed", ["probe", "seen"], [[p.probe, p.seen] for p in self.passed]))
        sections.append(table("Not examined", ["probe", "why", "what makes it possible"], self.gathered()))
        if self.assumed:
            sections.append(f"<h4>Assumed</h4><ul>{''.join(f'<li>{escape(line)}</li>' for line in self.assumed)}</ul>")
        return "".join(sections) + "</section>"


# No colour is set but the line's, which is half of the page's own text colour, so it shows on dark and on light.
STYLE = (
    "<style>.attnlib-doctor table{border-collapse:collapse;margin:.3em 0 1em;color:inherit;font-size:inherit}"
    ".attnlib-doctor th,.attnlib-doctor td{text-align:left;vertical-align:top;padding:.35em .7em;"
    "border:1px solid color-mix(in srgb,currentColor 35%,transparent);white-space:normal;background:none}"
    ".attnlib-doctor tbody th{font-weight:600}</style>"
)


def table(title: str, heads: list[str], rows: list[list[str]]) -> str:
    """An HTML table under a heading, whose first column heads its rows; nothing if there are no rows."""
    if not rows:
        return ""
    head = "".join(f"<th scope='col'>{escape(each)}</th>" for each in heads)
    body = "".join(
        f"<tr><th scope='row'>{escape(first)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<h4>{escape(title)}</h4><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def wrapped(text: str, indent: str = "   ") -> list[str]:
    """Lines of at most 100 characters; those after the first are indented further."""
    first = "   " if len(indent) == 3 else "   "
    return textwrap.wrap(text, 100, initial_indent=first, subsequent_indent=indent + "  ", break_long_words=False)
