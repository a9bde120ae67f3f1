"""Where a file or server is: a path or url that shows itself without what is secret in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, unquote_plus

_HIDDEN = "***"
_CHAIN = "::"  # between the parts of a url that fsspec chains, as in simplecache::https://
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s'\"<>`]*")
_STOPS = ".,;:!)]}"  # that end a url in a sentence rather than belong to it
_SHORTEST_SECRET = 3  # letters: fewer occur in any text
_PORT = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]+)?")  # a host and its port


@dataclass(frozen=True, repr=False)
class Location:
    """A path or url.

    As text, in messages, in ``repr`` and formatted, it stands without user, password, query and fragment;
    what opens the file asks for the whole by name. It is not a ``str``, so that it is not joined to one
    unawares.

    Attributes
    ----------
    real
        All of it.

    Examples
    --------
    >>> print(Location("https://me:secret@example.org/a.mtx?token=secret"))
    https://***@example.org/a.mtx?***
    """

    real: str

    def __str__(self) -> str:
        return shown_url(self.real) if "://" in self.real else self.real

    def __repr__(self) -> str:
        return repr(str(self))

    def reason(self, error: BaseException) -> str:
        """Return what an error that is not ours says of this location, without urls' secrets.

        Where a secret is in it in any form, only its kind is given, with the number of its answer if it has
        one.
        """
        text = str(getattr(error, "strerror", None) or error).strip().split("\n")[0]
        text = text.replace(self.real, str(self))
        forms = "\n".join([text, unquote(text), unquote_plus(text)]).casefold()
        if text and not any(secret.casefold() in forms for secret in self._secrets()):
            return shown_text(text)
        numbers = (getattr(error, word, None) for word in ("status", "code", "errno"))
        number = next((f" {one}" for one in numbers if isinstance(one, int)), "")
        return f"{type(error).__name__}{number}"

    def _secrets(self) -> Iterator[str]:
        shown = str(self)
        for part in self.real.split(_CHAIN) if "://" in self.real else ():
            rest = part.partition("://")[2] or part
            kept = set(re.split(r"[/:?#@\s]", shown))
            for word in re.split(r"[/:?#@&;=\s]", rest):
                if word not in kept:
                    for one in {word, unquote(word), unquote_plus(word)}:
                        if len(one) >= _SHORTEST_SECRET:
                            yield one


def shown_text(text: str) -> str:
    """Return a text in which every url is shown without its secrets."""
    return _URL.sub(_shown_match, text) if "://" in text else text


def _shown_match(found: re.Match[str]) -> str:
    url = found.group()
    kept = url.rstrip(_STOPS)
    return shown_url(kept) + url[len(kept) :]


def shown_url(url: str) -> str:
    """Return a url without user, password, query and fragment; where these blur, more of it is hidden."""
    parts = url.split(_CHAIN)
    for place, part in enumerate(parts):
        scheme, mark, _ = part.partition("://")
        after = parts[place + 1 :]
        shown = _shown_part(part)
        if mark and after and not _URL.match(after[0]) and "@" in _CHAIN.join(after):
            shown = f"{scheme}://{_HIDDEN}"  # the two colons are of a password
        if shown != part:  # what follows may belong to what is hidden
            return _CHAIN.join([*parts[:place], shown, *(_HIDDEN for _ in after)])
    return url


def _shown_part(part: str) -> str:
    scheme, mark, rest = part.partition("://")
    if not mark:
        return _without_user(part) if "@" in part else part
    place = re.search(r"[/?#]", rest)
    end = place.start() if place else len(rest)
    _, at, host = rest[:end].rpartition("@")
    # A password with an @, a slash or the like in it, which should have been written as %40 or %2F.
    is_odd = _PORT.fullmatch(host) is None or ("@" in rest[end:] and (at or ":" in host))
    if is_odd:
        before = re.split(r"[?#]", rest, maxsplit=1)[0]
        is_user = "@" in before and "@" not in rest[len(before) :]
        return f"{scheme}://{_cut(_without_user(rest)) if is_user else _HIDDEN}"
    return f"{scheme}://{_HIDDEN + '@' if at else ''}{host}{_cut(rest[end:])}"


def _without_user(text: str) -> str:
    return f"{_HIDDEN}@{text.rpartition('@')[2]}"


def _cut(text: str) -> str:
    # Without query and fragment, of which it is only told that they are there.
    path, *_ = re.split(r"[?#]", text, maxsplit=1)
    after = text[len(path) :]
    if not after:
        return path
    marks = "?#" if after[0] == "?" and "#" in after else after[0]
    return path + "".join(f"{mark}{_HIDDEN}" for mark in marks)
