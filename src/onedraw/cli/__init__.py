"""The command line: parse, call, show. It holds no logic of its own.

`main` is the console script. Errors the library raises on purpose become one paragraph on stderr and an exit code
(2 wrong call, 3 refused promise, 4 spent budget); nothing is written on failure.
"""

from __future__ import annotations

import sys

from .application import application


def main() -> None:
    from onedraw.errors import OnedrawError

    from .show import show_error

    try:
        application()
    except OnedrawError as error:
        show_error(error)
        sys.exit(error.exit_code)


__all__ = ["application", "main"]
