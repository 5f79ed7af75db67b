#include "base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <vector>

namespace thimble {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Letters to insert, remove or change.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

struct Nearest {
  std::string name;
  size_t apart = std::numeric_limits<size_t>::max();
};

Nearest find_nearest(std::string_view wrong, std::span<const std::string> names) {
  constexpr size_t kLongest = 64;  // of anything that was meant to be a name
  constexpr size_t kShortestStart = 3;
  const std::string typed = in_lower_case(wrong.substr(0, kLongest));
  Nearest best;
  for (const std::string& name : names) {
    const std::string known = in_lower_case(name);
    const bool abbreviated = typed.size() >= kShortestStart && known.starts_with(typed);
    const size_t apart = abbreviated ? 0 : distance(typed, known);
    if (apart < best.apart) best = {name, apart};
  }
  return best;
}

}  // namespace

std::string nearest_name(std::string_view wrong, std::span<const std::string> names) {
  return find_nearest(wrong, names).name;
}

std::string likely_name(std::string_view wrong, std::span<const std::string> names) {
  Nearest best = find_nearest(wrong, names);
  return best.apart <= wrong.size() / 2 ? std::move(best.name) : std::string();
}

}  // namespace thimble
