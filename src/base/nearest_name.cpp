#include "base/nearest_name.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace thimble {

std::string nearest_name(std::string_view wrong, std::span<const std::string> names) {
  const auto distance = [](std::string_view a, std::string_view b) {
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
  };
  constexpr size_t kLongest = 64;  // of anything that was meant to be a name
  wrong = wrong.substr(0, kLongest);
  std::string best;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& name : names) {
    const size_t apart = distance(wrong, name);
    if (apart < least) least = apart, best = name;
  }
  return best;
}

}  // namespace thimble
