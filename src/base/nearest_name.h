// The name that was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace thimble {

// The one of `names` that `wrong` is the fewest letters away from.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

}  // namespace thimble
