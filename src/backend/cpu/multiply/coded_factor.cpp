#include "backend/cpu/multiply/coded_factor.h"

#include <cstring>

namespace thimble {
namespace {

// Decodes numbers [at, at + count) of a block, which share a scale.
using DecodeLevels = void (*)(const uint8_t* codes, int64_t at, int64_t count, float scale,
                              float* to);

THIMBLE_INLINE void decode_plain(const uint8_t* codes, int64_t at, int64_t count, float scale,
                                 float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const unsigned both = codes[(at + i) / 2];
    to[i] = kNf4Levels[(at + i) % 2 == 0 ? both >> 4 : both & 15U] * scale;
  }
}

void decode_one_by_one(const uint8_t* codes, int64_t at, int64_t count, float scale, float* to) {
  decode_plain(codes, at, count, scale, to);
}

#if defined(__x86_64__)
using EightBytes = uint8_t __attribute__((vector_size(8)));
using SixteenBytes = uint8_t __attribute__((vector_size(16)));

// Eight bytes as sixteen codes, the high half of a byte first.
THIMBLE_INLINE SixteenBytes codes_of(const uint8_t* from) {
  EightBytes both;
  std::memcpy(&both, from, sizeof(both));
  const EightBytes high = both >> 4, low = both & 15;
  return __builtin_shufflevector(high, low, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
}

// How many numbers are in front of the first even place.
THIMBLE_INLINE int64_t odd_ones(int64_t at, int64_t count) {
  return std::min<int64_t>(at % 2, count);
}

__attribute__((target("avx512f"))) void decode_by_sixteens(const uint8_t* codes, int64_t at,
                                                           int64_t count, float scale, float* to) {
  using Numbers = float __attribute__((vector_size(64)));
  using Places = int32_t __attribute__((vector_size(64)));
  Numbers levels;
  std::memcpy(&levels, kNf4Levels.data(), sizeof(levels));
  int64_t i = odd_ones(at, count);
  decode_plain(codes, at, i, scale, to);
  for (; i + 16 <= count; i += 16) {
    const Places which = __builtin_convertvector(codes_of(codes + (at + i) / 2), Places);
    const Numbers numbers = __builtin_shuffle(levels, which) * scale;
    std::memcpy(to + i, &numbers, sizeof(numbers));
  }
  decode_plain(codes, at + i, count - i, scale, to + i);
}

__attribute__((target("avx2"))) void decode_by_eights(const uint8_t* codes, int64_t at,
                                                      int64_t count, float scale, float* to) {
  using Numbers = float __attribute__((vector_size(32)));
  using Places = int32_t __attribute__((vector_size(32)));
  Numbers low, high;
  std::memcpy(&low, kNf4Levels.data(), sizeof(low));
  std::memcpy(&high, kNf4Levels.data() + 8, sizeof(high));
  int64_t i = odd_ones(at, count);
  decode_plain(codes, at, i, scale, to);
  for (; i + 16 <= count; i += 16) {
    const SixteenBytes which = codes_of(codes + (at + i) / 2);
    const auto first = __builtin_shufflevector(which, which, 0, 1, 2, 3, 4, 5, 6, 7);
    const auto last = __builtin_shufflevector(which, which, 8, 9, 10, 11, 12, 13, 14, 15);
    const Numbers front =
        __builtin_shuffle(low, high, __builtin_convertvector(first, Places)) * scale;
    const Numbers back =
        __builtin_shuffle(low, high, __builtin_convertvector(last, Places)) * scale;
    std::memcpy(to + i, &front, sizeof(front));
    std::memcpy(to + i + 8, &back, sizeof(back));
  }
  decode_plain(codes, at + i, count - i, scale, to + i);
}

DecodeLevels pick_decode() {
  if (__builtin_cpu_supports("avx512f")) return decode_by_sixteens;
  return __builtin_cpu_supports("avx2") ? decode_by_eights : decode_one_by_one;
}
#else
DecodeLevels pick_decode() { return decode_one_by_one; }
#endif

void decode_levels(const Nf4Weight& weight, int64_t first, int64_t count, float* to) {
  static const DecodeLevels decode = pick_decode();
  for (const int64_t end = first + count; first < end;) {
    const int64_t some = std::min(end - first, kNf4Block - first % kNf4Block);
    float scale = 0;
    nf4_scales(weight, first / kNf4Block, 1, &scale);
    decode(weight.codes, first, some, scale, to);
    first += some;
    to += some;
  }
}

THIMBLE_FOR_EACH_ISA void decode_bytes(const int8_t* __restrict codes, int64_t count, float scale,
                                       float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(codes[i]) * scale * kInt8Step;
}

}  // namespace

void decode_row(const CodedNumbers& numbers, int64_t row, int64_t first, int64_t count, float* to) {
  const int64_t begin = row * numbers.columns + first;
  switch (numbers.format) {
    case CodedFormat::nf4:
      return decode_levels(numbers.nf4, begin, count, to);
    case CodedFormat::int8:
      return decode_bytes(static_cast<const int8_t*>(numbers.codes) + begin, count,
                          numbers.scales[row], to);
    case CodedFormat::f16:
    case CodedFormat::bf16:
      return widen(numbers.format == CodedFormat::f16 ? DType::f16 : DType::bf16,
                   static_cast<const uint16_t*>(numbers.codes) + begin, count, to);
  }
}

void CodedRowsOfB::panels(int64_t p, int64_t count, int64_t column, int64_t columns, int64_t wide,
                          float* to) const {
  constexpr int64_t kPiece = 512;  // a multiple of every width
  float row[kPiece];
  for (int64_t j = 0; j < columns; j += kPiece) {
    const int64_t some = std::min(kPiece, columns - j);
    for (int64_t i = 0; i < count; ++i) {
      decode_row(numbers, p + i, column + j, some, row);
      copy_row_to_panels(row, i, count, some, wide, to + j * count);
    }
  }
}

void CodedColumnsOfB::panels(int64_t p, int64_t count, int64_t column, int64_t columns,
                             int64_t wide, float* to) const {
  panels_of_columns(count, columns, wide, to, [&](int64_t j, float* column_of_b) {
    decode_row(numbers, column + j, p, count, column_of_b);
  });
}

}  // namespace thimble
