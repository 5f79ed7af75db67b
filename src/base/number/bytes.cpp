#include "base/number/bytes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest_name.h"

namespace thimble {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 17> kUnits = {{{"", 1},
                                          {"B", 1},
                                          {"kB", 1e3},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"kiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0},
                                          {"K", 1024.0},
                                          {"M", 1048576.0},
                                          {"G", 1073741824.0},
                                          {"T", 1099511627776.0},
                                          {"bytes", 1}}};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  const std::string_view whole = text;
  const auto fail = [&](std::string_view why) {
    user_error("'{}' is not a size: {}; write for example 64MiB, 6.5MB or 1073741824", whole, why);
  };
  text = trim(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number)) fail("it does not start with a number");
  const std::string_view unit = trim(text.substr(static_cast<size_t>(end - text.data())));
  for (const Unit& candidate : kUnits) {
    if (candidate.name != unit) continue;
    const double bytes = std::floor(number * candidate.factor);
    if (bytes < 1) fail("it must be at least one byte");
    if (bytes > 9e15) fail("it is beyond any memory");
    return Bytes(static_cast<int64_t>(bytes));
  }
  user_check(!unit.starts_with(','),
             "'{}' is not a size: decimals stand behind a point; write {}.{}", whole,
             text.substr(0, text.find(',')), unit.substr(std::min<size_t>(1, unit.size())));
  const auto digits = text.substr(0, static_cast<size_t>(end - text.data()));
  std::vector<std::string> units;
  for (const Unit& candidate : kUnits) units.emplace_back(candidate.name);
  const std::string likely = likely_name(unit, units);
  user_check(likely.empty(), "'{}' is not a size: '{}' is not a unit of memory; write {}{}", whole,
             unit, digits, likely);
  fail(fmt::format("'{}' is not a unit of memory", unit));
  return Bytes();
}

std::string to_string(Bytes bytes) {
  constexpr std::array<std::string_view, 5> names = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes.count);
  size_t unit = 0;
  while (std::abs(amount) >= 1024 && unit + 1 < names.size()) {
    amount /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes.count);
  const int decimals = std::abs(amount) < 10 ? 2 : std::abs(amount) < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", amount, decimals, names[unit]);
}

}  // namespace thimble
