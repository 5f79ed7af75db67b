// thimble: trains neural networks inside a memory budget that you choose.
#include "cli/command_line.h"
#include "cli/early_end.h"
#include "cli/waiting.h"

int main(int argc, char** argv) {
  thimble::hear_of_the_end();
  thimble::settle_waiting(argv);
  return thimble::run_command_line(argc, argv);
}
