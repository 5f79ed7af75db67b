// Text of unknown origin (a name in a file, a path, a word that was typed) as it may stand in a
// message or a terminal's table: control characters would move the cursor, change colours or forge
// lines, and bytes that are not UTF-8 break whoever reads the message. Text that is printable
// already stays as it is, so that nothing is escaped twice.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// In one line: control characters and bytes that are not UTF-8 as "\n", "\x1b", "\u009b".
std::string printable(std::string_view text);

// Likewise, of text in several lines: these stay.
std::string printable_lines(std::string_view text);

// Likewise, of a message: lines that are indented stay lines.
std::string printable_message(std::string_view text);

}  // namespace thimble
