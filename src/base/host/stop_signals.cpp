#include "base/host/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace thimble {
namespace {

// A handler gets nothing but the number, so what it works on is here.
volatile sig_atomic_t received_signal = 0;
const char* volatile notice_to_give = "";

constexpr int kSignals[] = {SIGINT, SIGTERM};
struct sigaction before[2];

void on_signal(int signal) {
  if (received_signal != 0) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // takes effect when this handler returns
    return;
  }
  received_signal = signal;
  const int code = errno;
  const char* notice = notice_to_give;
  // Nothing can be done about a message that does not get through.
  if (::write(STDERR_FILENO, notice, std::strlen(notice)) < 0) errno = code;
  errno = code;
}

}  // namespace

StopSignals::StopSignals(const char* notice) {
  received_signal = 0;
  notice_to_give = notice;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and writes go on as if nothing had happened
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);
  for (size_t i = 0; i < 2; ++i) ::sigaction(kSignals[i], &action, &before[i]);
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < 2; ++i) ::sigaction(kSignals[i], &before[i], nullptr);
}

int StopSignals::received() const { return received_signal; }

const char* name_of_signal(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

}  // namespace thimble
