"""Graders on many machines, through a Dask scheduler: the same executor interface as on this one.

Each worker is a grader of its own, with one thread (`dask worker --nthreads 1`), on a machine where this version of
rlassay is installed and the submissions lie under the same path. With dask-jobqueue the workers can be SLURM's jobs.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 30


class ClusterError(Exception):
    """A scheduler that cannot be used; says why and what to do."""


def connect(address: str) -> Client:
    """A connection to the scheduler at an address such as tcp://10.0.0.1:8786.

    Raises:
        ClusterError: Dask is not installed, nobody answers there, or it has no workers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError(f"--scheduler needs Dask ({error}): pip install 'rlassay[cluster]'") from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"{address}: no Dask scheduler answers there: {error}; start one with `dask scheduler`"
        ) from error
    if not client.scheduler_info()["workers"]:
        client.close()
        raise ClusterError(
            f"{address}: the scheduler has no workers; start some with `dask worker --nthreads 1 {address}`"
        )
    return client


def executor(client: Client) -> Executor:
    """The cluster as an executor. A job whose worker dies is given to another one."""
    made: Executor = client.get_executor(pure=False)
    return made


def threads(client: Client) -> int:
    """How many jobs the cluster works on at once."""
    return sum(client.nthreads().values())
