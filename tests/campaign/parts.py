"""The command line that all parts of the campaign share."""
import argparse
import pathlib
import tempfile
import traceback

from program import Program, Report


def parser_of(doc):
    parser = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("thimble", help="the program")
    parser.add_argument("--findings", default="build/campaign/findings",
                        help="where files stay that make the program fail")
    return parser


def arguments_of(doc, **defaults):
    parser = parser_of(doc)
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", default=value,
                            type=str if value is None else type(value))
    return parser.parse_args()


def run_part(name, run, thimble, findings, **settings):
    """Runs a part in a folder of its own; its report."""
    report = Report(name, pathlib.Path(findings).resolve())
    with tempfile.TemporaryDirectory(prefix="thimble-campaign-") as folder:
        try:
            run(Program(thimble, folder), report, **settings)
        except Exception:  # what the part takes for granted does not work: a finding, too
            report.check(False, f"the part broke off:\n{traceback.format_exc()}")
    report.close()
    print(report.line(), flush=True)
    return report


def finish(name, run, arguments):
    """Runs one part as a program; its exit code."""
    settings = dict(vars(arguments))
    report = run_part(name, run, settings.pop("thimble"), settings.pop("findings"), **settings)
    return 1 if report.findings else 0
