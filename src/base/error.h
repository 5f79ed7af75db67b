// Two families of failure. UserError is the caller's mistake: one clear sentence says what, where
// and what to try, and the program exits 2. InternalError is our own bug, with file:line, and exits
// 1. "No plan fits" is neither: it is a value (plan/plan.h).
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace thimble {

// Either may quote names out of files: both are printable, whatever these are.
class UserError : public std::runtime_error {
 public:
  explicit UserError(std::string_view what) : std::runtime_error(printable_message(what)) {}
};

class InternalError : public std::logic_error {
 public:
  explicit InternalError(std::string_view what) : std::logic_error(printable_message(what)) {}
};

template <class... Args>
[[noreturn]] void user_error(fmt::format_string<Args...> format, Args&&... args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void user_check(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) user_error(format, std::forward<Args>(args)...);
}

// REQUIRES: `holds` is an invariant of ours; its failure is a bug whatever the input was.
inline void internal_check(bool holds, const char* what,
                           std::source_location where = std::source_location::current()) {
  if (!holds) {
    throw InternalError(fmt::format("{}:{}: {} (a bug in thimble: please report it)",
                                    where.file_name(), where.line(), what));
  }
}

inline void internal_check(bool holds, const std::string& what,
                           std::source_location where = std::source_location::current()) {
  internal_check(holds, what.c_str(), where);
}

}  // namespace thimble
