// Two families of failure. UserError: the caller's mistake; one clear sentence saying what, where
// and what to try; the program exits 2. InternalError: our own bug; carries file:line; exits 1.
// "No plan fits" is neither: it is a value (plan/plan.h).
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace thimble {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
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
