// Reading numbers out of model names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace thimble {

// The whole numbers behind `prefix`, split at `separator`; empty optional when the name does not
// begin with the prefix. Throws UserError when what follows is not a list of whole numbers.
std::optional<std::vector<int64_t>> numbers_after(std::string_view name, std::string_view prefix,
                                                  char separator);

}  // namespace thimble
