"""What ``examine`` was given: checked at the door."""

import inspect

from torch import nn

from attnlib.doctor.conventions import CONVENTIONS


def check_arguments(layer, d_model, d_context, mask, causal, positions, batch_first, call, n, batch) -> None:
    """Raise a ValueError that says what was given, what was expected, and what to try."""
    if inspect.isclass(layer):
        raise ValueError(
            f"layer is the class {layer.__name__}; expected an instance. Try {layer.__name__}(...) with its sizes."
        )
    if not callable(layer):
        raise ValueError(
            f"layer is {type(layer).__name__}; expected a module or a function. Try doctor.weights(...) for attention maps."
        )
    for name, value, least in (("d_model", d_model, 1), ("d_context", d_context, 1), ("n", n, 5), ("batch", batch, 2)):
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not whole and value is not None:
            raise ValueError(
                f"{name}={value!r}; expected a whole number of at least {least}. Try {name}={max(least, 7)}."
            )
    if mask is not None and mask not in CONVENTIONS:
        raise ValueError(
            f"mask={mask!r}; expected one of {', '.join(map(repr, CONVENTIONS))}, which say what True or 1 means. "
            f"Try mask='may attend' if True means: may attend."
        )
    for name, value in (("causal", causal), ("positions", positions), ("batch_first", batch_first)):
        if value not in (None, True, False):
            raise ValueError(f"{name}={value!r}; expected True, False, or None to find out. Try {name}=True.")
    if call is not None:
        count = len(inspect.signature(call).parameters) if callable(call) else 0
        if not 2 <= count <= 5:
            raise ValueError(
                f"call={call!r} takes {count} arguments; expected (layer, x), (layer, x, mask), (layer, query, context, mask) "
                f"or (layer, query, key, value, mask). Try call=lambda layer, x, mask: layer(x, mask=mask)."
            )
    if (
        not isinstance(layer, nn.Module)
        and call is None
        and hasattr(layer, "__code__")
        and layer.__code__.co_argcount == 0
    ):
        raise ValueError(
            f"{layer.__name__} takes no arguments; expected a function of query, key and value. Try call=."
        )
