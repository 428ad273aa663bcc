"""What an assignment takes from the notebook of a lesson."""

import ast
import json
import re
from dataclasses import dataclass

from attnlib.marking.assignment import CHECK, NOTEBOOKS


@dataclass(frozen=True)
class Part:
    """An exercise as it stands in its lesson."""

    before: str  # what its section says before it
    text: str
    stub: str
    hints: str


@dataclass(frozen=True)
class Lesson:
    """What an assignment takes from a lesson's notebook."""

    title: str
    address: str
    setup: str
    imports: list[tuple[str, str, str, str]]  # module, name, the name it gets, and the line
    parts: dict[str, Part]

    @classmethod
    def read(cls, number: str) -> "Lesson":
        """From the notebook in this checkout."""
        (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        kinds = [cell["cell_type"] for cell in cells]
        texts = ["".join(cell["source"]) for cell in cells]
        title = texts[0].split("\n")[0].removeprefix("# ")
        setup = next(text for text in texts if text.startswith("# Set-up."))
        repository = re.search(r"git\+(https://\S+?)@", setup)[1]
        imported = [
            (getattr(node, "module", "") or alias.name, alias.name, alias.asname or alias.name, line_of(node, alias))
            for text in texts
            if re.match(r"(import|from) ", text)
            for node in ast.parse(text).body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        ]
        parts = {}
        for place, text in enumerate(texts):
            if kinds[place] == "code" and (name := CHECK.match(text)):
                section = told(texts, kinds, place)
                start = section.rfind("### Exercise")
                hints = re.findall(r"<details><summary>Hint.*?</details>", texts[place + 1], re.DOTALL)
                parts[name[1]] = Part(
                    recalled(section[:start]), section[start:].strip(), texts[place - 1], "\n\n".join(hints)
                )
        return cls(title, f"{repository}/blob/main/notebooks/{path.name}", setup, imported, parts)


def told(texts: list[str], kinds: list[str], check: int) -> str:
    """All that a section says before an exercise's stub, with its code to read, but without other exercises' cells."""
    found = ""
    for place in range(check - 2, -1, -1):
        if kinds[place] == "markdown":
            found = f"{texts[place]}\n\n{found}"
            if re.search("^## ", texts[place], re.MULTILINE):
                break
        elif not any(CHECK.match(text) for text in texts[place : place + 2]):
            found = f"```python\n{texts[place]}\n```\n\n{found}"
    return found


def recalled(section: str) -> str:
    """The text of a section, from its heading on, without what is to be clicked, predicted or solved."""
    section = section[section.rfind("\n## ") + 1 :] if "\n## " in section else section
    section = re.sub(r"<details>.*?</details>", "", section, flags=re.DOTALL)
    section = re.sub(r"^### Exercise.*?(?=^##|\Z)", "", section, flags=re.DOTALL | re.MULTILINE)
    section = re.sub(r"^\*\*Predict, then run\.\*\*.*?(?=\n\n|\Z)", "", section, flags=re.DOTALL | re.MULTILINE)
    heading, _, text = section.strip().partition("\n")
    return re.sub(r"\n{3,}", "\n\n", f"**{heading.removeprefix('## ')}**\n{text}").strip() if text.strip() else ""


def line_of(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """The line that imports one name."""
    one = ast.Import([alias]) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, [alias], node.level)
    return ast.unparse(one)
