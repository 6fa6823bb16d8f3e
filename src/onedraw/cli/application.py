"""The commands and how they are spelled. Every command answers `--json`; heavy rooms load inside the commands."""

from __future__ import annotations

import typer

from . import auditing, books, choosing, demonstration, evaluating, planning, predicting, publishing, schemas

application = typer.Typer(
    name="onedraw",
    help="Publish counts, means, medians and regressions of private records, with a certificate anyone can check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
application.command("demo")(demonstration.demo)
application.add_typer(schemas.group, name="schema")
application.command("plan")(planning.plan)
application.command("release")(publishing.release)
application.command("predict")(predicting.predict)
application.command("evaluate")(evaluating.evaluate)
application.command("choose")(choosing.choose)
application.command("verify")(publishing.verify)
application.command("audit")(auditing.audit)
application.add_typer(books.group, name="ledger")


def show_version(wanted: bool) -> None:
    if wanted:
        from onedraw import __version__

        print(f"onedraw {__version__}")
        raise typer.Exit


@application.callback()
def options(
    version: bool = typer.Option(False, "--version", help="Print the version.", callback=show_version, is_eager=True),
) -> None:
    pass
