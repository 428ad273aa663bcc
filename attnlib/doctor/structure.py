"""What can be read off a module without calling it."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from attnlib.doctor.chart import Chart
from attnlib.doctor.report import NotExamined, Passed, found

STATE = (
    "attn",
    "attention",
    "weights",
    "map",
    "score",
    "cache",
    "last",
    "mask",
)  # kept to look at, not to compute with
KNOWN = {"_parameters", "_buffers", "_modules"}


def hidden_modules(module: nn.Module) -> Iterator[tuple[str, nn.Module | nn.Parameter]]:
    """Parameters, and modules that hold some, in plain lists, tuples or dicts, where PyTorch does not find them."""
    registered = {id(each) for each in (*module.modules(), *module.parameters())}
    for prefix, parent in module.named_modules():
        for name, value in vars(parent).items():
            if name in KNOWN:
                continue
            items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
            for item in items:
                if isinstance(item, nn.Parameter) and id(item) not in registered:
                    yield f"{prefix}.{name}".strip("."), item
                if isinstance(item, nn.Module) and id(item) not in registered and any(True for _ in item.parameters()):
                    yield f"{prefix}.{name}".strip("."), item


def plain_tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Floating tensors of two axes or more, or that want a gradient, which are neither parameter nor buffer."""
    for prefix, parent in module.named_modules():
        for name, value in vars(parent).items():
            left = value.grad_fn is not None if isinstance(value, Tensor) else True  # of an earlier call
            if (
                not left
                and value.is_floating_point()
                and (value.ndim >= 2 or value.requires_grad)
                and not any(part in name.lower() for part in STATE)
            ):
                yield f"{prefix}.{name}".strip("."), value


def looks_sinusoidal(table: Tensor) -> bool:
    """Whether a table [.., n, width] begins with sin 0 and cos 0 and stays between −1 and 1."""
    if not table.isfinite().all() or float(table.abs().max()) > 1 + 1e-6:
        return False
    first = table.reshape(-1, table.shape[-1])[0]
    return bool((((first - 1).abs() < 1e-6) | (first.abs() < 1e-6)).all())


def structure_probe(chart: Chart) -> list:
    """Modules in plain lists, plain tensors, one object in several places."""
    module, probe = chart.original, "what PyTorch can see of the module"
    if not isinstance(module, nn.Module):
        return [NotExamined(probe, "it is a function.", "Examine the module that calls it.")]
    results = []
    hidden = list(hidden_modules(module))
    if hidden:
        tensors = [
            each for _, item in hidden for each in (item.parameters() if isinstance(item, nn.Module) else [item])
        ]
        count = sum(parameter.numel() for parameter in tensors)
        kind = "layers" if isinstance(hidden[0][1], nn.Module) else "parameters"
        seen = f"{len(hidden)} {kind} in `{hidden[0][0]}` with {count} numbers are not in parameters()"
        results.append(found("heads in a plain list", probe, seen))
    for name, tensor in plain_tensors(module):
        is_table = not tensor.requires_grad and (looks_sinusoidal(tensor) or not varied(tensor))
        fault = "table is no buffer" if is_table else "learned tensor is no parameter"
        results.append(
            found(fault, probe, f"`{name}` {list(tensor.shape)} ({tensor.numel()} numbers) is a plain attribute")
        )
    shared = repeated(module)
    if shared:
        results.append(
            found("one layer used several times", probe, f"{', '.join(shared)} are 1 object, not {len(shared)}")
        )
    total = sum(parameter.numel() for parameter in module.parameters())
    return results or [Passed(probe, f"{total} numbers in {len(list(module.parameters()))} parameters")]


def varied(tensor: Tensor) -> bool:
    """Whether a tensor holds many different numbers, as learned ones do and masks do not."""
    return len(torch.unique(tensor.detach())) > max(3, tensor.numel() // 2)


def repeated(module: nn.Module) -> list[str]:
    """Names under which one object, in a list of layers, or one weight, among linear maps side by side, stands twice."""
    places: dict[int, list[str]] = {}
    for prefix, parent in module.named_modules():
        if isinstance(parent, (nn.ModuleList, nn.Sequential)):
            for name, child in parent._modules.items():
                if child is not None and any(True for _ in child.parameters()):
                    places.setdefault(id(child), []).append(f"{prefix}.{name}".strip("."))
        maps = [(name, child) for name, child in parent._modules.items() if isinstance(child, nn.Linear)]
        for name, child in maps if not isinstance(parent, (nn.ModuleList, nn.Sequential)) else ():
            places.setdefault(id(child.weight), []).append(f"{prefix}.{name}".strip("."))
    return next((names for names in places.values() if len(names) > 1), [])
