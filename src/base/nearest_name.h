// The name that was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace thimble {

// The one of `names` that `wrong` abbreviates, else the one that it is the fewest letters away from, in capitals or not.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

// The same where it is near: at most half of its letters are others. Else empty.
std::string likely_name(std::string_view wrong, std::span<const std::string> names);

}  // namespace thimble
