"""Messages between the harness and a guest: plain values in JSON, the numbers of arrays as raw bytes behind it.

    4 bytes   length of the header, big-endian
    8 bytes   length of the payload
    header    JSON
    payload   the arrays in the order in which the header names them, little-endian, row by row, each begun at a
              multiple of 8 bytes

Either side takes nothing for granted that the other one says: a message that is malformed or too large is a
`WireError`, and what comes out of one is made of exact builtin types, numpy arrays and a few classes (see `packing`).
Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from .packing import MOST_PAYLOAD, Packer, Unpacker, WireError

__all__ = ["MOST_HEADER", "MOST_PAYLOAD", "Channel", "Closed", "Late", "WireError"]

PREFIX = struct.Struct(">IQ")

MOST_HEADER = 4 * 2**20
"""Largest header, in bytes; JSON of this size is read in about a second, whatever it says."""

CHUNK = 2**16
"""Bytes that are asked for at once."""

ENCODER = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))


def _no_number(constant: str) -> NoReturn:
    raise WireError(f"sent what is no message ({constant})")


DECODER = json.JSONDecoder(parse_constant=_no_number)


class Closed(Exception):
    """The other side has closed its end."""


class Late(Exception):
    """Nothing came, or was taken, in time."""


class Channel:
    """One end of the connection.

    `convert` makes an array, or another value that can be sent, of one that cannot. Objects that are arguments of calls
    are received only where `arguments` says so.
    """

    def __init__(
        self, end: socket.socket, convert: Callable[[Any], Any] | None = None, arguments: bool = False
    ) -> None:
        self.end = end
        self.convert = convert
        self.arguments = arguments
        self._received = bytearray()

    def send(self, message: Mapping[str, Any], seconds: float | None = None) -> None:
        """Send a message, which the other side has so many seconds to take.

        Raises:
            WireError: it is too large or nested too deeply; nothing was sent.
            Closed: there is nobody to send it to.
            Late: it was not taken in time.
        """
        packer = Packer(self.convert)
        header = ENCODER.encode(packer.pack(dict(message))).encode()
        if len(header) > MOST_HEADER or packer.size > MOST_PAYLOAD:
            raise WireError(f"takes {len(header) + packer.size} bytes, more than the {MOST_PAYLOAD} that may be sent")
        try:
            self.end.settimeout(seconds)
            self.end.sendall(b"".join((PREFIX.pack(len(header), packer.size), header, *packer.pieces)))
        except TimeoutError:
            raise Late from None
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self, seconds: float | None = None) -> dict[str, Any]:
        """The next message, waited for so many seconds.

        Raises:
            WireError: what came is no message, or one that is too large.
            Closed: the other side has ended.
            Late: it did not come in time.
        """
        until = None if seconds is None else time.monotonic() + seconds
        header_length, payload_length = PREFIX.unpack(self._take(PREFIX.size, until))
        if header_length > MOST_HEADER or payload_length > MOST_PAYLOAD:
            raise WireError(f"announces {header_length + payload_length} bytes, more than may be sent")
        header, payload = self._take(header_length, until), self._take(payload_length, until)
        unpacker = Unpacker(payload, self.arguments)
        try:
            message = unpacker.unpack(DECODER.decode(header.decode()))
        except WireError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, AttributeError) as error:
            raise WireError(f"sent what is no message ({type(error).__name__})") from error
        if type(message) is not dict or not all(type(key) is str for key in message):
            raise WireError("sent what is no message (no table)")
        if unpacker.place != payload_length:
            raise WireError("sent numbers of no array")
        return message

    def _take(self, count: int, until: float | None) -> bytes:
        received = self._received
        while len(received) < count:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise Late
            try:
                self.end.settimeout(left)
                chunk = self.end.recv(CHUNK)
            except TimeoutError:
                raise Late from None
            except OSError as error:
                raise Closed(str(error)) from error
            if not chunk:
                raise Closed("the connection has ended")
            received += chunk
        taken = bytes(received[:count])
        del received[:count]
        return taken
