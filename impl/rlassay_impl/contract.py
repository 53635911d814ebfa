"""What the operations ask of their arguments, and the three moves they share: raise precision, detach, mask."""

import torch
from torch import Tensor


def require(holds: bool, name: str, had: object, expected: str) -> None:
    """Raise ValueError, naming the argument, what it had and what was expected, unless the condition holds."""
    if not holds:
        raise ValueError(f"{name}={had}, but should be {expected}")


def check_shape(name: str, tensor: Tensor, **sizes: int | None) -> None:
    """Check one keyword per axis: its size, or None where any size will do.

    >>> check_shape("mask", torch.ones(2, 3), B=2, T=4)
    Traceback (most recent call last):
    ValueError: mask.shape=[2, 3], but should be [B=2, T=4]
    """
    axes = ", ".join(axis if size is None else f"{axis}={size}" for axis, size in sizes.items())
    fits = tensor.ndim == len(sizes) and all(
        size in (None, had) for size, had in zip(sizes.values(), tensor.shape, strict=True)
    )
    require(fits, f"{name}.shape", list(tensor.shape), f"[{axes}]")


def check_floats(name: str, tensor: Tensor, **sizes: int | None) -> None:
    """Check for a floating-point tensor of these sizes."""
    require(tensor.is_floating_point(), f"{name}.dtype", tensor.dtype, "a floating-point dtype")
    check_shape(name, tensor, **sizes)


def check_integers(name: str, tensor: Tensor, **sizes: int | None) -> None:
    """Check for an integer tensor of these sizes."""
    integer = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
    require(integer, f"{name}.dtype", tensor.dtype, "an integer dtype")
    check_shape(name, tensor, **sizes)


def check_ids(name: str, ids: Tensor, chosen: Tensor, size: int) -> None:
    """Check that every chosen id lies in 0..size−1; what stands elsewhere is free."""
    outside = chosen & ((ids < 0) | (ids >= size))
    if outside.any():
        raise ValueError(f"{name} holds {ids[outside][0].item()} at an unmasked place, but should hold 0..{size - 1}")


def check_mask(mask: Tensor, **sizes: int | None) -> Tensor:
    """Check a mask of bool, int or float, 0 and 1 only, and return it as bool."""
    check_shape("mask", mask, **sizes)
    other = (mask != 0) & (mask != 1)
    if other.any():
        raise ValueError(f"mask holds {mask[other][0].item()}, but should hold only 0 and 1")
    return mask == 1


def working(tensor: Tensor) -> Tensor:
    """The tensor in the precision that sums are taken in: float32, or float64 if it has it."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def frozen(tensor: Tensor) -> Tensor:
    """The tensor in working precision and without its graph: a weight, not something to learn from."""
    return working(tensor.detach())


def keep(tensor: Tensor, chosen: Tensor) -> Tensor:
    """The tensor in working precision where chosen, exactly 0 elsewhere.

    Used before any arithmetic: a product 0·NaN is NaN, in the value and again in the gradient, a selection is not.
    """
    return torch.where(chosen, working(tensor), 0.0)
