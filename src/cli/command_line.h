// The whole command line: words in, exit code out.
#pragma once

namespace thimble {

// `argv` as of main(). Whatever goes wrong is said on standard error.
int run_command_line(int argc, char** argv);

}  // namespace thimble
