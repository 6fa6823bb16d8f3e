"""What a place looks like when it is printed: a PostgreSQL URL without any of the passwords it may hold.

A password can stand before the host (``user:secret@``) or among the parameters (``?password=…``, ``?sslpassword=…``).
`shown_place` is the one function that hides them; messages, reprs and the command line print what it returns. Where an
unescaped / ? # or @ leaves open which piece is the password, nothing behind the scheme is printed.
"""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult, unquote, unquote_plus, urlsplit, urlunsplit

HIDDEN = "***"
_SECRET = re.compile(r"pass(?!file)|pwd|secret|token", re.IGNORECASE)  # passfile names a file


def shown_place(place: str | os.PathLike[str]) -> str:
    """The place as it may be printed: paths as they are, URLs with ``***`` for every password."""
    text = os.fspath(place)
    if "://" not in text:
        return text
    parts = _parts(text)
    if parts is None:
        return f"{text.partition('://')[0]}://{HIDDEN}"
    query = "&".join(map(_shown_parameter, parts.query.split("&")))
    return urlunsplit(parts._replace(netloc=_shown_authority(parts), query=query))


def without_passwords(text: str, place: str) -> str:
    """Somebody else's words about a place, the driver's for instance, with the place's passwords taken out."""
    parts = _parts(place)
    if parts is None:
        return "the reason is not printed, because it may quote the URL; write / ? # @ : in a password as %2F %3F %23 %40 %3A"
    for secret in _secrets(parts):
        text = text.replace(secret, HIDDEN)
    return text


def _parts(place: str) -> SplitResult | None:
    """The URL taken apart; None where it is not sure which piece is the password."""
    try:
        parts = urlsplit(place)
    except ValueError:
        return None
    rest = parts.path + parts.query + parts.fragment
    return None if "@" in rest or "#" in place or parts.netloc.count("@") > 1 else parts


def _shown_authority(parts: SplitResult) -> str:
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{user}{colon}{HIDDEN if colon else ''}{at}{host}"


def _shown_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    return f"{name}={HIDDEN}" if equals and _SECRET.search(unquote_plus(name)) else parameter


def _secrets(parts: SplitResult) -> list[str]:
    found = [parts.netloc.rpartition("@")[0].partition(":")[2]]
    for parameter in parts.query.split("&"):
        name, _, value = parameter.partition("=")
        found += [value] if _SECRET.search(unquote_plus(name)) else []
    spellings = {spelling for secret in found for spelling in (secret, unquote(secret), unquote_plus(secret))}
    return sorted(filter(None, spellings), key=len, reverse=True)
