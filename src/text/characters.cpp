#include "text/characters.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace thimble {
namespace {

// first, first + stride, ..., last.
struct CodeRun {
  char32_t first;
  char32_t last;
  uint8_t stride;
};

// Likewise; each is that much below its lower case.
struct CaseRun {
  char32_t first;
  char32_t last;
  uint8_t stride;
  int32_t distance;
};

// Tables of Unicode 14: assets/unicode-14, written by tools/unicode_tables.
constexpr CodeRun kAlphabetic[] = {
#include "generated/assets/alphabetic.inc"
};
constexpr CodeRun kLetter[] = {
#include "generated/assets/letter.inc"
};
constexpr CodeRun kNumber[] = {
#include "generated/assets/number.inc"
};
constexpr CodeRun kDecimal[] = {
#include "generated/assets/decimal.inc"
};
constexpr CodeRun kLowercase[] = {
#include "generated/assets/lowercase.inc"
};
constexpr CodeRun kCurrency[] = {
#include "generated/assets/currency.inc"
};
constexpr CodeRun kCased[] = {
#include "generated/assets/cased.inc"
};
constexpr CodeRun kCaseIgnorable[] = {
#include "generated/assets/case_ignorable.inc"
};
constexpr CaseRun kToLower[] = {
#include "generated/assets/to_lower.inc"
};

// The run that holds `c`; null: none does.
template <class Run>
const Run* find_run(std::span<const Run> runs, char32_t c) {
  const auto after = std::ranges::upper_bound(runs, c, {}, &Run::first);
  if (after == runs.begin()) return nullptr;
  const Run& run = *std::prev(after);
  return c <= run.last && (c - run.first) % run.stride == 0 ? &run : nullptr;
}

bool is_in(std::span<const CodeRun> runs, char32_t c) { return find_run(runs, c) != nullptr; }

}  // namespace

bool is_alphabetic(char32_t c) { return is_in(kAlphabetic, c); }
bool is_letter(char32_t c) { return is_in(kLetter, c); }
bool is_number(char32_t c) { return is_in(kNumber, c); }
bool is_alphanumeric(char32_t c) { return is_in(kAlphabetic, c) || is_in(kDecimal, c); }
bool is_lowercase(char32_t c) { return is_in(kLowercase, c); }
bool is_currency(char32_t c) { return is_in(kCurrency, c); }
bool is_cased(char32_t c) { return is_in(kCased, c); }
bool is_case_ignorable(char32_t c) { return is_in(kCaseIgnorable, c); }

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

char32_t to_lower(char32_t c) {
  const CaseRun* const run = find_run(std::span<const CaseRun>(kToLower), c);
  return run == nullptr ? c : static_cast<char32_t>(static_cast<int64_t>(c) + run->distance);
}

}  // namespace thimble
