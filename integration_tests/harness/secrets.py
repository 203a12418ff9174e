"""Marked secrets for tests of what errors and logs show."""

import logging
import traceback
from collections.abc import Iterable
from typing import Any

_MARK = "Zq7Marked"
_KEY = "\n".join(
    (f"MIGH{_MARK}AgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg", f"7f{_MARK}Iza0l2", "Zq7MarkedA==")
)


class _Password:
    """A value of the wrong type, whose `repr` shows the password."""

    def __repr__(self) -> str:
        return f"Password({_MARK})"


SECRETS: dict[str, Any] = {
    "PEM": f"-----BEGIN PRIVATE KEY-----\n{_KEY}\n-----END PRIVATE KEY-----\n",
    "password": f"{_MARK}password",
    "two lines": f"{_MARK}one\n{_MARK}two",
    "NUL": f"{_MARK}before\0{_MARK}after",
    "pairs": f"principal=me password={_MARK}",
    "URL": f"https://me:{_MARK}@127.0.0.1:1/token?code={_MARK}\x01",
    "bytes": f"-----BEGIN PRIVATE KEY-----\n{_KEY}".encode(),
    "list": [f"{_MARK}password"],
    "table": {"password": f"{_MARK}password"},
    "object": _Password(),
}
"""Secrets by their kind. `leaks` finds them, also in parts and in lower case."""


class Recorder(logging.Handler):
    """Keeps what logging at DEBUG shows of each record, its arguments and its exception included."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.texts += [self.format(record), repr(record.args), *(() if error is None else texts_of(error))]


def texts_of(error: BaseException) -> list[str]:
    """Return what an exception may show: its texts, and those of its causes, contexts and arguments."""
    texts: list[str] = []
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        texts += [*traceback.format_exception_only(each), repr(each), repr(each.args), repr(vars(each))]
        texts += [
            repr(getattr(each, name, None)) for name in ("filename", "filename2", "doc", "object", "url")
        ]
        waiting += [each.__cause__, each.__context__]
        waiting += [argument for argument in each.args if isinstance(argument, BaseException)]
    return texts


def leaks(texts: Iterable[str]) -> list[str]:
    """Return the texts that show a secret of `SECRETS`."""
    return [text for text in texts if _MARK.lower() in text.lower()]
