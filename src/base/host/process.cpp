#include "base/host/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string_view>

namespace thimble {
namespace {

Bytes status_field(std::string_view name) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return {};
  char line[256];
  long long kib = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::string_view(line).starts_with(name)) {
      std::sscanf(line + name.size(), " %lld", &kib);
      break;
    }
  }
  std::fclose(file);
  return Bytes(kib * 1024);
}

}  // namespace

Bytes resident_now() { return status_field("VmRSS:"); }
Bytes resident_peak() { return status_field("VmHWM:"); }

void forget_resident_peak() {
  std::FILE* file = std::fopen("/proc/self/clear_refs", "w");
  if (file == nullptr) return;
  std::fputs("5", file);
  std::fclose(file);
}

void prepare_process() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is this one: those before it are taken by now.
    const int taken = ::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (taken >= 0 && taken != fd) ::close(taken);
  }
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

std::string cpu_model() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown cpu";
}

}  // namespace thimble
