#include "model/name.h"

#include <charconv>

#include "base/error.h"

namespace thimble {

std::optional<std::vector<int64_t>> numbers_after(std::string_view name, std::string_view prefix,
                                                  char separator) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::vector<int64_t> numbers;
  std::string_view rest = name.substr(prefix.size());
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(separator));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    user_check(error == std::errc() && end == part.data() + part.size(),
               "'{}' is not a model: '{}' in it is not a number", name, part);
    numbers.push_back(number);
    if (part.size() == rest.size()) return numbers;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace thimble
