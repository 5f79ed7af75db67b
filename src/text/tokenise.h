// Words and punctuation apart, and together again, by the rules of Moses' tokenizer.perl and
// detokenizer.perl, which is what translation data sets are measured and published with. Characters
// that mean something to Moses are escaped as it does (' is &apos;).
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// `language`: "en" and others that keep apostrophes in a way of their own ("fr", "it"); any other
// is treated as German is. REQUIRES: UTF-8. The result's tokens are joined by single spaces.
std::string moses_tokenise(std::string_view line, std::string_view language);

// The other way, as far as it goes: what was between tokens is a guess.
std::string moses_detokenise(std::string_view line, std::string_view language);

}  // namespace thimble
