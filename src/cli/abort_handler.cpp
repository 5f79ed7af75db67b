#include "cli/abort_handler.h"

#include <signal.h>
#include <unistd.h>

#include "comm/world.h"

namespace thimble {
namespace {

void end_with_a_word(int signal) {
  constexpr char kWords[] =
      "thimble: this rank was told to end while no training was under way; another one may be "
      "gone: "
      "start them again, with --resume=auto where a checkpoint may have been saved\n";
  if (::write(STDERR_FILENO, kWords, sizeof kWords - 1) < 0) ::_exit(128 + signal);
  ::_exit(128 + signal);
}

void mask_the_end(int how) {
  if (launched_ranks() <= 1) return;
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  ::sigprocmask(how, &end, nullptr);
}

}  // namespace

void handle_aborts() {
  if (launched_ranks() <= 1) return;
  ::signal(SIGTERM, end_with_a_word);
  mask_the_end(SIG_UNBLOCK);
}

void hold_aborts() { mask_the_end(SIG_BLOCK); }

}  // namespace thimble
