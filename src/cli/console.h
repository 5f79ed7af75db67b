// The output of the program: results on standard output, everything else on standard error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/printable.h"

namespace thimble {

// Text on standard error. Text that does not get through (a full disk, a closed descriptor, a
// reader that is gone) is dropped: no message is worth a training.
void say(std::string_view text) noexcept;

// The same, with what is filled in printable.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say(std::string_view(printable_lines(fmt::format(format, std::forward<Args>(args)...))));
}

// Lines on standard output, likewise. Text that is a result itself (of `sample`, `translate`) goes
// there as it is.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}", printable_lines(fmt::format(format, std::forward<Args>(args)...)));
}

// Another rank says what went wrong: this one ends without a word.
struct SaidElsewhere {};

// Sends what was printed to standard output on its way. Returns why not all of it got there; empty:
// it did.
std::string undelivered_output();

}  // namespace thimble
