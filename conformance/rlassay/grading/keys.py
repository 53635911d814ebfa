"""Names for files and folders made from whatever ids students have: safe everywhere, and never two alike."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

LONGEST = 80
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
"""Names of devices on some systems."""


def safe_key(text: str) -> str:
    """The text itself where it is a safe name, else what of it is safe with a hash of all of it.

    Safe are ASCII letters, digits, `-`, `_` and `.`, up to 80 of them, not `-` or `.` first, not `.` last, and no name
    of a device.
    """
    kept = re.sub(r"[^A-Za-z0-9._-]+", "_", text).lstrip(".-").rstrip(".")
    if kept == text and 0 < len(text) <= LONGEST and not RESERVED.fullmatch(text):
        return text
    return _hashed(kept.replace(".", "_") if RESERVED.fullmatch(kept) else kept, text, 10)


def distinct_keys(entries: Sequence[tuple[str, str]]) -> list[str]:
    """Keys for (id, entry) pairs, of which no two are alike even where letters' case does not count.

    The entry, which is different for each, tells those apart whose ids give one key.
    """
    keys = [safe_key(text) for text, _ in entries]
    counts = Counter(key.lower() for key in keys)
    taken = {key for key, count in counts.items() if count == 1}
    for place, (text, entry) in enumerate(entries):
        if counts[keys[place].lower()] > 1:
            longer = (_hashed(keys[place], f"{text}\0{entry}", length) for length in (10, 20, 40))
            keys[place] = next(key for key in longer if key.lower() not in taken)
            taken.add(keys[place].lower())
    return keys


def _hashed(kept: str, text: str, length: int) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:length]
    return f"{kept[: LONGEST - length - 1] or 'submission'}-{digest}"
