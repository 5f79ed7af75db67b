// A search tries what a user might be refused, and goes on: the refusal is a value to it.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"

namespace thimble {

// The sentence that a user would be told.
struct Refused {
  std::string why;
};

// The result of `make`, or the reason that a user would be told. Every other exception passes.
template <class Make>
std::variant<std::invoke_result_t<Make>, Refused> attempt(Make&& make) {
  try {
    return std::forward<Make>(make)();
  } catch (const UserError& error) {
    return Refused{error.what()};
  }
}

// The result alone. None: it was refused.
template <class Make>
std::optional<std::invoke_result_t<Make>> if_allowed(Make&& make) {
  auto made = attempt(std::forward<Make>(make));
  if (auto* const value = std::get_if<0>(&made)) return std::move(*value);
  return std::nullopt;
}

}  // namespace thimble
