"""What is needed to go on with a training that was stopped, in one file that is never half written (lesson 11)."""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import nn

FORMAT = "attnlib training 2"


def save_checkpoint(
    path: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer, run: dict[str, Any], step: int, history: Any
) -> None:
    """Write the state after a number of steps beside the file and, once the disk has it, move it to the file's name."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    state = {
        "format": FORMAT,
        "run": run,
        "made": description(model),
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "history": asdict(history),
    }
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())  # else a power failure may leave the name with nothing behind it
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
    if missing := sorted({"run", "made", "step", "model", "optimizer", "random", "history"} - set(state)):
        raise ValueError(f"{name} is not whole: {', '.join(missing)} missing. Try to delete it.")
    if told := differences(state["run"], run):
        raise ValueError(f"{name} belongs to another run: {told}. Try another path, or delete it to begin anew.")
    own = {key: list(value.shape) for key, value in model.state_dict().items()}
    its = {key: list(value.shape) for key, value in state["model"].items()}
    if own != its:
        key = next(key for key in [*own, *its] if own.get(key) != its.get(key))
        raise ValueError(
            f"{name} belongs to another model: {key} is {its.get(key, 'missing')} there and {own.get(key, 'missing')} here. "
            f"Try another path, or delete it to begin anew."
        )
    if told := differences(state["made"], description(model)):
        raise ValueError(f"{name} belongs to another model: {told}. Try another path, or delete it to begin anew.")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    return state["step"], make_history(**state["history"])


def description(model: nn.Module) -> dict[str, Any]:
    """What a model is besides its weights: the kind of each part, and its settings, such as the number of heads."""
    told: dict[str, Any] = {}
    for name, part in model.named_modules():
        told[name or "model"] = type(part).__name__
        for key, value in vars(part).items():
            if key != "training" and not key.startswith("_") and isinstance(value, (bool, int, float, str, type(None))):
                told[f"{name}.{key}".lstrip(".")] = value
    return told


def differences(there: dict[str, Any], here: dict[str, Any]) -> str:
    """Where two descriptions differ, in words; empty if nowhere. What only one of them has is missing in the other."""
    absent = object()
    told = []
    for key in [*here, *(key for key in there if key not in here)]:
        one, other = there.get(key, absent), here.get(key, absent)
        if one is absent or other is absent or one != other:
            one, other = ("missing" if value is absent else repr(value) for value in (one, other))
            told.append(f"{key} {one} there, {other} here")
    return ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "")
