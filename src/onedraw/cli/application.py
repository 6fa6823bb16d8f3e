"""The commands and how they are spelled. Every command answers `--json`; heavy rooms load inside the commands."""

from __future__ import annotations

import typer

from . import audit, choose, demo, evaluate, ledger, plan, predict, release, reproduce, schema

application = typer.Typer(
    name="onedraw",
    help="Publish counts, means, medians and regressions of private records, with a certificate anyone can check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
application.command("demo")(demo.demo)
application.add_typer(schema.group, name="schema")
application.command("plan")(plan.plan)
application.command("release")(release.release)
application.command("predict")(predict.predict)
application.command("evaluate")(evaluate.evaluate)
application.command("choose")(choose.choose)
application.command("verify")(release.verify)
application.command("audit")(audit.audit)
application.add_typer(ledger.group, name="ledger")
application.command("reproduce")(reproduce.reproduce)


@application.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from onedraw import __version__

        print(f"onedraw {__version__}")
        raise typer.Exit
