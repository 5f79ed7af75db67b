"""`python -m thimble`: the command line."""

import ctypes
import os
import signal
import sys

from ._library import c


def main() -> int:
    # The program's own manners with Ctrl-C: a checkpoint after this step.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = [os.fsencode(word) for word in ["thimble", *sys.argv[1:]]]
    sys.stdout.flush()
    return c.main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None))


if __name__ == "__main__":
    sys.exit(main())
