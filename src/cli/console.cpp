#include "cli/console.h"

#include <cerrno>
#include <cstdio>

#include "base/io/file.h"

namespace thimble {

void say(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  std::clearerr(stderr);
}

std::string undelivered_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int code = errno;
  if (flushed && std::ferror(stdout) == 0) return "";
  return flushed || code == 0 ? "a part of it was refused before; send it to a file"
                              : why_refused(code);
}

}  // namespace thimble
