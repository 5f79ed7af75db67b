#include "data/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/error.h"

namespace thimble {
namespace {

constexpr int64_t kChunk = 4096;         // numbers
constexpr int64_t kLongestHeader = 1 << 16;

// What follows 'key': in the header's dictionary.
std::string_view after_key(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size() + 3);
  return rest.substr(std::min(rest.size(), rest.find_first_not_of(' ')));
}

}  // namespace

NpyFile::NpyFile(const std::string& path) : file_(path) {
  parse_header();
  if (dtype_ == DType::i32) find_limit();
}

void NpyFile::parse_header() {
  const auto sound = [&](bool holds, std::string_view what) {
    user_check(holds, "'{}' is not an array that can be read: {}; save it again with numpy.save",
               file_.path(), what);
  };
  std::array<std::byte, 12> start{};
  sound(file_.size() >= std::ssize(start), "it is too short");
  file_.read_at(0, start);
  const auto byte = [&](size_t i) { return std::to_integer<int64_t>(start[i]); };
  sound(std::memcmp(start.data(), "\x93NUMPY", 6) == 0, "it does not begin like a .npy file");
  sound(byte(6) == 1 || byte(6) == 2, "its format is of another version");
  const int64_t prefix = byte(6) == 1 ? 10 : 12;
  int64_t length = byte(8) + 256 * byte(9);
  if (byte(6) == 2) length += (byte(10) << 16) + (byte(11) << 24);
  sound(length <= kLongestHeader && prefix + length <= file_.size(), "its header is cut off");
  std::string text(static_cast<size_t>(length), ' ');
  file_.read_at(prefix, std::as_writable_bytes(std::span(text)));
  data_at_ = prefix + length;

  const std::string_view type = after_key(text, "descr");
  struct Known {
    std::string_view name;
    DType dtype;
    bool wide;
  };
  bool known = false;
  for (const auto& [name, dtype, wide] :
       {Known{"'<f4'", DType::f32, false}, {"'<i4'", DType::i32, false},
        {"'<i8'", DType::i32, true}, {"'|u1'", DType::u8, false}, {"'|b1'", DType::u8, false}}) {
    if (!type.starts_with(name)) continue;
    known = true;
    dtype_ = dtype, wide_ = wide;
  }
  sound(known, "its numbers are neither float32, int32, int64, uint8 nor bool");
  sound(after_key(text, "fortran_order").starts_with("False"), "it is not in C order");

  std::string_view shape = after_key(text, "shape");
  sound(shape.starts_with('('), "it has no shape");
  shape.remove_prefix(1);
  std::vector<int64_t> dims;
  while (!shape.empty() && shape.front() != ')') {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), extent);
    sound(error == std::errc() && extent >= 0 && dims.size() <= Shape::kMaxRank,
          "its shape is no list of sizes");
    dims.push_back(extent);
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
    const size_t next = shape.find_first_not_of(", ");
    shape.remove_prefix(std::min(shape.size(), next));
  }
  sound(!dims.empty(), "it has no rows");
  rows_ = dims.front();
  row_shape_ = Shape(std::span<const int64_t>(dims).subspan(1));
  int64_t bytes = row_shape_.elements() * (wide_ ? 8 : size_of(dtype_));
  sound(!__builtin_mul_overflow(bytes, rows_, &bytes) && bytes == file_.size() - data_at_,
        "its size is not that of its shape");
}

template <class Body>
void NpyFile::for_each_chunk(int64_t begin, int64_t count, const Body& body) const {
  std::array<int64_t, kChunk> room;
  const int64_t size = wide_ ? 8 : size_of(dtype_);
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t some = std::min(kChunk, count - at);
    const std::span<std::byte> bytes =
        std::as_writable_bytes(std::span(room)).first(static_cast<size_t>(some * size));
    file_.read_at(data_at_ + (begin + at) * size, bytes);
    body(at, some, bytes.data());
  }
}

void NpyFile::find_limit() {
  int64_t least = 0, most = -1;
  for_each_chunk(0, rows_ * row_shape_.elements(), [&](int64_t, int64_t count, const void* data) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = wide_ ? static_cast<const int64_t*>(data)[i]
                                   : static_cast<const int32_t*>(data)[i];
      least = std::min(least, number), most = std::max(most, number);
    }
  });
  user_check(least >= INT32_MIN && most <= INT32_MAX,
             "'{}' has whole numbers from {} to {}, beyond 32 bits", file_.path(), least, most);
  limit_ = most + 1;
}

void NpyFile::read_row(int64_t row, const RecordPart& part) const {
  const int64_t elements = row_shape_.elements();
  if (!wide_ && part.whole()) {
    file_.read_at(data_at_ + row * elements * size_of(dtype_), part.all<std::byte>());
    return;
  }
  const int64_t per_entry = part.entry / size_of(dtype());
  for_each_chunk(row * elements, elements, [&](int64_t at, int64_t count, const std::byte* data) {
    for (int64_t i = 0; i < count; ++i) {
      std::byte* const to = part.data + (at + i) / per_entry * part.stride +
                            (at + i) % per_entry * size_of(dtype());
      if (wide_) {
        const auto number = static_cast<int32_t>(reinterpret_cast<const int64_t*>(data)[i]);
        std::memcpy(to, &number, sizeof(number));
      } else {
        std::memcpy(to, data + i * size_of(dtype_), static_cast<size_t>(size_of(dtype_)));
      }
    }
  });
}

}  // namespace thimble
