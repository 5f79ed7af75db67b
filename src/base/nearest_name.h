// The name that was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace thimble {

// The one of `names` that another program's word is for: "cuda" of "gpu". Empty: it is no such word.
std::string our_name(std::string_view theirs, std::span<const std::string> names);

// The one of `names` that `wrong` stands for: another program's word for it ("gpu"), its beginning, or the
// fewest letters away, in capitals or not.
std::string nearest_name(std::string_view wrong, std::span<const std::string> names);

// The same where it is near: at most half of its letters are others. Else empty.
std::string likely_name(std::string_view wrong, std::span<const std::string> names);

// The end of a sentence about an unknown name: "; the nearest is 'adamw'". Empty: none is near.
std::string nearest_clause(std::string_view wrong, std::span<const std::string> names);

}  // namespace thimble
