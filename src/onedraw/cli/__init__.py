"""The command line: parse, call, show. It holds no logic of its own.

`application` has the commands, each of which answers `--json`; heavy packages load inside them. `main` is the console script.
Errors the library raises on purpose become one paragraph on stderr and an exit code (2 wrong call, 3 refused promise, 4 spent
budget, 5 paid for but not finished); nothing is written on failure, but for a release that was paid for and could be written
nowhere else: it goes to standard output.
"""

from __future__ import annotations

import sys
from typing import Any

import typer
import typer.core

from . import audit, choose, demo, evaluate, ledger, plan, predict, release, reproduce, schema


class Command(typer.core.TyperCommand):
    """A command whose help lists options by panel, in plain lines.

    Typer's own panels leave half of an 80-column terminal empty.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and then the options of each named panel."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            record = parameter.get_help_record(ctx)
            if record is not None:
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        for title, records in panels.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


application = typer.Typer(
    name="onedraw",
    help="Publish counts, means, medians and regressions of private records, with a certificate anyone can check.",
    no_args_is_help=True,
    rich_markup_mode=None,  # in panels half of an 80-column terminal would stay empty
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
application.command("demo", cls=Command)(demo.demo)
application.add_typer(schema.group, name="schema")
application.command("plan", cls=Command)(plan.plan)
application.command("release", cls=Command)(release.release)
application.command("predict", cls=Command)(predict.predict)
application.command("evaluate", cls=Command)(evaluate.evaluate)
application.command("choose", cls=Command)(choose.choose)
application.command("verify", cls=Command)(release.verify)
application.command("audit", cls=Command)(audit.audit)
application.add_typer(ledger.group, name="ledger")
application.command("reproduce", cls=Command)(reproduce.reproduce)


@application.callback(invoke_without_command=True)
def without_command(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from onedraw import __version__

        print(f"onedraw {__version__}")
        raise typer.Exit


def main() -> None:
    from onedraw.errors import CannotWrite, OnedrawError, Unfinished

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
    except OSError as error:  # of a disk that fails where no command expects it
        where = "" if error.filename is None else f" ({error.filename})"
        failed = CannotWrite(
            f"{error.strerror or type(error).__name__}{where}. What is in the ledger stands; look with `onedraw ledger show`. "
            "Repair the disk, then give the command again."
        )
        for note in getattr(error, "__notes__", ()):
            failed.add_note(note)
        show_error(failed)
        sys.exit(failed.exit_code)


__all__ = ["application", "main"]
