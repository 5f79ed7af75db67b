// thimble: trains neural networks inside a memory budget that you choose.
#include "cli/abort_handler.h"
#include "cli/command_line.h"
#include "cli/openmp_policy.h"

int main(int argc, char** argv) {
  thimble::handle_aborts();
  thimble::settle_openmp_policy(argv);
  return thimble::run_command_line(argc, argv);
}
