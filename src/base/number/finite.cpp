#include "base/number/finite.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/host/parallel.h"

namespace thimble {
namespace {

// A word holds one to four elements (f16 here). Not finite: all bits of the exponent are set. Then
// its lowest bit, added, carries into the place of the sign, and never beyond.
//
//   word       s eeeee mmmmmmmmmm | s eeeee mmmmmmmmmm | ...
//   exponent   0 11111 0000000000 | 0 11111 0000000000 |
//   lowest     0 00001 0000000000 | 0 00001 0000000000 |
//   sign       1 00000 0000000000 | 1 00000 0000000000 |
struct Fields {
  uint64_t exponent;
  uint64_t lowest;
  uint64_t sign;
};

Fields fields_of(DType dtype) {
  constexpr uint64_t kQuarters = 0x0001000100010001u, kHalves = 0x0000000100000001u;
  switch (dtype) {
    case DType::f16:
      return {0x7c00u * kQuarters, 0x0400u * kQuarters, 0x8000u * kQuarters};
    case DType::bf16:
      return {0x7f80u * kQuarters, 0x0080u * kQuarters, 0x8000u * kQuarters};
    case DType::f32:
      return {0x7f800000u * kHalves, 0x00800000u * kHalves, 0x80000000u * kHalves};
    default:
      return {0x7ff0000000000000u, 0x0010000000000000u, 0x8000000000000000u};
  }
}

constexpr int64_t kWord = sizeof(uint64_t);
constexpr int64_t kBlock = 4096;              // bytes looked at before the next chance to stop
constexpr int64_t kGrain = int64_t{1} << 22;  // bytes that are worth a thread

// REQUIRES: size is a multiple of a word.
bool words_finite(const std::byte* at, int64_t size, const Fields& fields) {
  uint64_t carries = 0;
  for (const std::byte* const end = at + size; at != end; at += kWord) {
    uint64_t word;
    std::memcpy(&word, at, kWord);
    carries |= (word & fields.exponent) + fields.lowest;
  }
  return (carries & fields.sign) == 0;
}

}  // namespace

bool all_finite(std::span<const std::byte> bytes, DType dtype) {
  if (!is_floating(dtype)) return true;
  const Fields fields = fields_of(dtype);
  const int64_t whole = std::ssize(bytes) / kWord * kWord;
  std::array<std::byte, kWord> rest{};  // zeros are finite
  std::copy(bytes.begin() + whole, bytes.end(), rest.begin());
  std::atomic<bool> finite = words_finite(rest.data(), kWord, fields);
  for_ranges(whole, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end && finite.load(std::memory_order_relaxed); at += kBlock) {
      if (!words_finite(bytes.data() + at, std::min(kBlock, end - at), fields)) finite = false;
    }
  });
  return finite;
}

bool any_nan(std::span<const std::byte> bytes, DType dtype) {
  if (!is_floating(dtype)) return false;
  return with_float_type(dtype, [&]<class T>(TypeTag<T>) {
    bool found = false;
    for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
      T number;
      std::memcpy(&number, bytes.data() + at, sizeof(T));
      found = found || std::isnan(static_cast<double>(number));
    }
    return found;
  });
}

}  // namespace thimble
