// The library as a whole: its version, and the command line.
#include "base/build_id.h"
#include "cli/command_line.h"
#include "cli/version.h"
#include "thimble/thimble.h"

const char* thimble_version() {
  static const std::string version = thimble::version_number();
  return version.c_str();
}

int thimble_main(int argc, char** argv) { return thimble::run_command_line(argc, argv); }
