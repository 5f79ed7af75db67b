#include "data/format/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <vector>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kLongestHeader = 1 << 16;

const std::map<std::string_view, DType>& known_types() {
  static const std::map<std::string_view, DType> known = {
      {"<f4", DType::f32}, {"<f8", DType::f64}, {"<f2", DType::f16}, {"<i4", DType::i32},
      {"<i8", DType::i64}, {"|u1", DType::u8},  {"|b1", DType::u8}};
  return known;
}

// The text behind `'key':`, up to what ends it.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return "";
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const size_t end = rest.starts_with('(') ? rest.find(')') : rest.find_first_of(",}");
  return end == std::string_view::npos ? "" : rest.substr(0, end);
}

// "(60000, 28, 28" as numbers; false: it is none.
bool read_shape(std::string_view text, std::vector<int64_t>& shape) {
  if (!text.starts_with('(')) return false;
  text.remove_prefix(1);
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return true;
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0) return false;
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

}  // namespace

NpyFile::NpyFile(const std::string& path) : file_(path) {
  std::array<unsigned char, 12> start{};
  const auto enough = static_cast<size_t>(std::min<int64_t>(file_.size(), std::ssize(start)));
  file_.read_at(0, std::as_writable_bytes(std::span(start)).first(enough));
  const bool known = enough == start.size() && std::memcmp(start.data(), "\x93NUMPY", 6) == 0 &&
                     start[6] >= 1 && start[6] <= 3;
  user_check(known, "'{}' is no file of NumPy's (.npy); write it with numpy.save", path);
  const bool brief = start[6] == 1;
  const int64_t length =
      brief ? start[8] | start[9] << 8
            : start[8] | start[9] << 8 | start[10] << 16 | static_cast<int64_t>(start[11]) << 24;
  begin_ = (brief ? 10 : 12) + length;
  user_check(length <= kLongestHeader && begin_ <= file_.size(),
             "'{}' is damaged or truncated: its header has {} bytes; write it again", path, length);
  std::string header(static_cast<size_t>(length), '\0');
  file_.read_at(begin_ - length, std::as_writable_bytes(std::span(header)));

  std::string_view kind = value_of(header, "descr");
  if (kind.size() >= 2) kind = kind.substr(1, kind.size() - 2);  // its quotes
  const auto type = known_types().find(kind);
  user_check(
      type != known_types().end(),
      "'{}' has numbers of type '{}'; write it as float32, float64, float16, int32, int64 or "
      "uint8",
      path, kind);
  user_check(value_of(header, "fortran_order") == "False",
             "'{}' has its columns in front of its rows; write it with "
             "numpy.save(path, numpy.ascontiguousarray(array))",
             path);
  std::vector<int64_t> shape;
  const bool sound = read_shape(value_of(header, "shape"), shape) && !shape.empty() &&
                     std::ssize(shape) <= Shape::kMaxRank + 1;
  user_check(sound, "'{}' is damaged, or has no rows: its shape is '{}'", path,
             value_of(header, "shape"));
  rows_ = shape[0];
  int64_t bytes = size_of(type->second);
  for (const int64_t extent : shape) {
    const bool fits = extent == 0 || bytes <= file_.size() / extent + 1;
    bytes = fits ? bytes * extent : INT64_MAX / 2;
    if (!fits) break;
  }
  user_check(bytes == file_.size() - begin_,
             "'{}' is truncated or oversized: its shape wants {} bytes, and there are {}; write it "
             "again",
             path, bytes, file_.size() - begin_);
  row_ = {Shape(std::span(shape).subspan(1)), type->second};
}

void NpyFile::read(int64_t index, std::span<std::byte> out) const {
  file_.read_at(begin_ + index * row_.bytes().count, out);
}

}  // namespace thimble
