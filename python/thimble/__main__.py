"""`python -m thimble`: the command line. Some commands are the package's own, the others the library's."""

import ctypes
import os
import signal
import sys

from ._errors import Bug, DoesNotFit, Error
from ._library import BUG, MISTAKE, NO_FIT, c


def library_main(words: "list[str]") -> int:
    # The program's own manners with Ctrl-C: a checkpoint after this step.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    encoded = [os.fsencode(word) for word in ["thimble", *words]]
    sys.stdout.flush()
    return c.main(len(encoded), (ctypes.c_char_p * (len(encoded) + 1))(*encoded, None))


def own_command(words: "list[str]"):
    """The package's command that the words begin with, and its arguments; None: it is the library's."""
    if words[:1] == ["help"] and (own := own_command(words[1:])) is not None:
        return own[0], ["--help"]
    if words[:1] == ["finetune"]:
        from .finetune.command import finetune_command
        return finetune_command, words[1:]
    if words[:2] == ["data", "show"]:
        from .finetune.show import show_command
        return show_command, words[2:]
    if words[:1] == ["chat"]:
        from .finetune.chat import chat_command
        return chat_command, words[1:]
    return None


def main() -> int:
    words = sys.argv[1:]
    own = own_command(words)
    if own is None:
        return library_main(words)
    command, arguments = own
    try:
        outcome = command(arguments)
    except Error as error:
        print(f"thimble: {error}", file=sys.stderr)
        return NO_FIT if isinstance(error, DoesNotFit) else BUG if isinstance(error, Bug) else MISTAKE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return outcome if isinstance(outcome, int) else library_main(outcome)


if __name__ == "__main__":
    sys.exit(main())
