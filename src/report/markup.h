// Text that goes into HTML or SVG.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// With what would be markup spelt out, for elements and for attributes in double quotes.
std::string escaped_markup(std::string_view text);

}  // namespace thimble
