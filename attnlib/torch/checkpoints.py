"""What is needed to go on with a training that was stopped, in one file that is never half written (lesson 11)."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

FORMAT = "attnlib training 1"


def save_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer, run: dict[str, Any], step: int, history: Any
) -> None:
    """Write the state after a number of steps beside the file, then give it the file's name in one move."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    state = {
        "format": FORMAT,
        "run": run,
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "history": asdict(history),
    }
    torch.save(state, part)
    Path(part).replace(path)


def load_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer, run: dict[str, Any], make_history: Callable
) -> tuple[int, Any]:
    """Bring model, optimizer and random numbers into the state of a checkpoint; return its step and history.

    Raises
    ------
    ValueError
        If the file is damaged or no checkpoint of this course, or belongs to another model or another run; nothing is
        changed then.
    """
    name = Path(path).name
    try:
        state = torch.load(path, weights_only=True)  # never runs code that a file brings
    except Exception as error:
        raise ValueError(f"{name} cannot be read as a checkpoint: {type(error).__name__}. Try to delete it.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"{name} is no checkpoint of this course's training. Try another path.")
    if state["run"] != run:
        differing = [key for key in run if state["run"].get(key) != run[key]]
        told = ", ".join(f"{key} {state['run'].get(key)!r} there, {run[key]!r} here" for key in differing)
        raise ValueError(f"{name} belongs to another run: {told}. Try another path, or delete it to begin anew.")
    own = {key: list(value.shape) for key, value in model.state_dict().items()}
    its = {key: list(value.shape) for key, value in state["model"].items()}
    if own != its:
        key = next(key for key in [*own, *its] if own.get(key) != its.get(key))
        raise ValueError(
            f"{name} belongs to another model: {key} is {its.get(key, 'missing')} there and {own.get(key, 'missing')} here. "
            f"Try another path, or delete it to begin anew."
        )
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    return state["step"], make_history(**state["history"])
