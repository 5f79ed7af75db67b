#include "import/onnx/choices.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kMostExtent = int64_t{1} << 40;

template <class Number>
bool parses(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// Lists are joined by commas, and so are the extents of a shape: what has no '=' belongs to what was
// before it.
std::vector<std::pair<std::string, std::string>> entries_of(const std::vector<std::string>& pieces,
                                                            std::string_view flag,
                                                            std::string_view example) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const std::string& piece : pieces) {
    const size_t at = piece.rfind('=');
    if (at != std::string::npos) {
      entries.emplace_back(piece.substr(0, at), piece.substr(at + 1));
      continue;
    }
    user_check(!entries.empty(), "{} wants {}, not '{}'", flag, example, piece);
    entries.back().second += "," + piece;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      user_check(entries[k].first != entries[i].first, "{} names '{}' twice", flag,
                 entries[i].first);
    }
  }
  return entries;
}

}  // namespace

std::map<std::string, std::vector<int64_t>> shapes_in(const OnnxChoices& choices) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, text] : entries_of(choices.shapes, "--shape", "x=4,3,48,320")) {
    std::vector<int64_t>& shape = shapes[name];
    std::string_view rest = text;
    bool more = true;
    while (more) {
      const size_t comma = rest.find(',');
      const std::string_view one = rest.substr(0, comma);
      more = comma != std::string_view::npos;
      rest.remove_prefix(more ? comma + 1 : rest.size());
      int64_t extent = kRowsAxis;
      user_check(one == "rows" || (parses(one, extent) && extent >= 1 && extent < kMostExtent),
                 "--shape {}={}: '{}' is no extent; give numbers from 1 on, or rows", name, text,
                 one);
      shape.push_back(extent);
    }
    user_check(std::count(shape.begin(), shape.end(), kRowsAxis) <= 1,
               "--shape {}={} has two axes of rows", name, text);
  }
  return shapes;
}

std::map<std::string, double> fixed_in(const OnnxChoices& choices) {
  std::map<std::string, double> fixed;
  for (const auto& [name, text] : entries_of(choices.fixed, "--fixed", "sr=16000")) {
    double number = 0;
    user_check(parses(std::string_view(text), number), "--fixed {}={}: '{}' is no number", name,
               text, text);
    fixed[name] = number;
  }
  return fixed;
}

}  // namespace thimble
