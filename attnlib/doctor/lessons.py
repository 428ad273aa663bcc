"""The lessons of the course, by number: where a report sends its reader; and what is kept of a fault."""

from dataclasses import dataclass

LESSONS = {
    1: "Why attention",
    2: "Dot-product attention",
    3: "Scaling and temperature",
    4: "Masks and batches",
    5: "Multi-head attention",
    6: "Positions",
    7: "Gradients by hand",
    8: "From NumPy to PyTorch",
    9: "Transformer block",
    10: "From text to attention",
    11: "Movie reviews",
    12: "Reading attention maps",
    13: "Generating text",
    14: "Encoder and decoder",
    15: "Long sequences",
    16: "Debugging clinic",
    17: "Images",
    18: "Graphs",
    19: "Images and words",
    20: "Modern attention",
    21: "Many machines",
}


@dataclass(frozen=True)
class Fault:
    """What a fault usually means, how bad it is ("fault" or "warning"), and the number of its lesson."""

    meaning: str
    lesson: int
    severity: str = "fault"
