// Properties of Unicode's characters that the text code needs. A character is a code point.
#pragma once

namespace thimble {

bool is_alphabetic(char32_t c);
bool is_letter(char32_t c);        // alphabetic, but no mark and no numeral
bool is_number(char32_t c);        // any kind of digit or numeral
bool is_alphanumeric(char32_t c);  // a letter or a decimal digit
bool is_lowercase(char32_t c);
bool is_currency(char32_t c);
bool is_cased(char32_t c);           // has an upper and a lower case, or is one of them
bool is_case_ignorable(char32_t c);  // marks, apostrophes: looked past by rules about a word's end
// What Python's str.split() splits at.
bool is_space(char32_t c);
// The one that it is in lower case; itself where it has none, or where that takes two.
char32_t to_lower(char32_t c);

}  // namespace thimble
