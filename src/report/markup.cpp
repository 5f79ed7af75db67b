#include "report/markup.h"

#include "base/printable.h"

namespace thimble {

std::string escaped_markup(std::string_view text) {
  std::string escaped;
  for (const char c : printable_lines(text)) {  // XML has no control characters
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace thimble
