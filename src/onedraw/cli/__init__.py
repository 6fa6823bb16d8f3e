"""The command line: parse, call, show. It holds no logic of its own.

`main` is the console script. Errors the library raises on purpose become one paragraph on stderr and an exit code
(2 wrong call, 3 refused promise, 4 spent budget, 5 paid for but not finished); nothing is written on failure, but for a
release that was paid for and could be written nowhere else: it goes to standard output.
"""

from __future__ import annotations

import sys

from .application import application


def main() -> None:
    from onedraw.errors import OnedrawError, Unfinished

    from .show import show_error

    try:
        application()
    except OnedrawError as error:
        if isinstance(error, Unfinished) and error.fields["certificate"] is not None:
            certificate = error.fields["certificate"].to_json()
            try:  # it exists nowhere else: to standard output, or where that cannot be written either, beside it
                print(certificate, end="", flush=True)
            except OSError:
                print(certificate, end="", file=sys.stderr, flush=True)
        show_error(error)
        sys.exit(error.exit_code)


__all__ = ["application", "main"]
