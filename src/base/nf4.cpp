#include "base/nf4.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/number/nf4_number.h"

namespace thimble {
namespace {

constexpr float kSmallestScale = 1e-38F;

// Levels halfway between neighbours; a number at one goes down.
constexpr std::array<float, 15> kBounds = [] {
  std::array<float, 15> bounds{};
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = (kNf4Levels[i] + kNf4Levels[i + 1]) / 2;
  return bounds;
}();

using Block = std::array<float, kNf4Block>;

// The level of each number of [-1, 1]: bounds below it, counted for all of them side by side.
std::array<int32_t, kNf4Block> nearest_levels(const Block& scaled) {
  std::array<int32_t, kNf4Block> levels{};
  for (const float bound : kBounds) {
    for (size_t i = 0; i < scaled.size(); ++i) levels[i] += bound < scaled[i] ? 1 : 0;
  }
  return levels;
}

// linspace(0.1, 1, count) as PyTorch has it: each half counted from its own end, rounded once.
float spaced(int64_t count, int64_t k) {
  const double first = 0.1F, last = 1;
  const double step = (1.0F - 0.1F) / static_cast<float>(count - 1);
  return static_cast<float>(k < count / 2 ? first + step * static_cast<double>(k)
                                          : last - step * static_cast<double>(count - 1 - k));
}

// Seven decades with as many fractions as bits are left, both signs, and 0 and 1.
std::array<float, 256> make_scale_map() {
  std::array<float, 256> map{};
  size_t next = 0;
  for (int decade = 0; decade < 7; ++decade) {
    const int64_t count = (int64_t{1} << decade) + 1;
    const float factor = static_cast<float>(std::pow(10.0, decade - 6));
    for (int64_t k = 0; k + 1 < count; ++k) {
      const float mean = (spaced(count, k) + spaced(count, k + 1)) / 2;
      map[next++] = factor * mean;
      map[next++] = -factor * mean;
    }
  }
  map[next++] = 0;
  map[next++] = 1;
  std::ranges::sort(map);
  return map;
}

constexpr int64_t kGrid = 65536;

// The code of every point of a grid over [-1, 1]: bitsandbytes rounds a scale to the grid first.
std::vector<uint8_t> make_codes_of_grid() {
  const std::span<const float, 256> map = nf4_scale_map();
  std::vector<uint8_t> codes(kGrid);
  size_t code = 0;
  for (int64_t i = 0; i < kGrid; ++i) {
    const float at = -1.0F + 2.0F * static_cast<float>(i) / static_cast<float>(kGrid - 1);
    while (code < 255 && 0.5F * (map[code] + map[code + 1]) < at) ++code;
    codes[static_cast<size_t>(i)] = static_cast<uint8_t>(code);
  }
  return codes;
}

uint8_t code_of_scale(float scaled) {
  static const std::vector<uint8_t> codes = make_codes_of_grid();
  const float half = (std::clamp(scaled, -1.0F, 1.0F) + 1.0F) * 0.5F;
  return codes[static_cast<size_t>(std::fma(half, static_cast<float>(kGrid - 1), 0.5F))];
}

// Sums as PyTorch sums a row of f32 on one thread: `kLanes` numbers side by side, four such groups in
// turn, and four levels of partial sums, so that no sum is of many more numbers than another.
constexpr int64_t kLanes = 8, kGroups = 4, kLevels = 4;
template <int64_t kWidth>
using Rows = std::array<std::array<float, kWidth>, kGroups>;

template <int64_t kWidth>
void add_rows(Rows<kWidth>& to, const Rows<kWidth>& from) {
  for (size_t g = 0; g < kGroups; ++g) {
    for (size_t l = 0; l < kWidth; ++l) to[g][l] += from[g][l];
  }
}

template <int64_t kWidth>
float cascade_sum(std::span<const float> numbers) {
  const int64_t vectors = std::ssize(numbers) / kWidth, size = vectors / kGroups;
  const int64_t deep = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(size, 1) - 1));
  const int64_t power = std::max<int64_t>(4, deep / kLevels), step = int64_t{1} << power;
  std::array<Rows<kWidth>, kLevels> sums{};
  const float* next = numbers.data();
  const auto add_next = [&] {
    for (auto& group : sums[0]) {
      for (float& sum : group) sum += *next++;
    }
  };
  int64_t i = 0;
  while (i + step <= size) {
    for (int64_t j = 0; j < step; ++j, ++i) add_next();
    for (int64_t level = 1; level < kLevels; ++level) {
      add_rows<kWidth>(sums[static_cast<size_t>(level)], sums[static_cast<size_t>(level - 1)]);
      sums[static_cast<size_t>(level - 1)] = {};
      if ((i & ((step - 1) << (level * power))) != 0) break;
    }
  }
  for (; i < size; ++i) add_next();
  for (size_t level = 1; level < kLevels; ++level) add_rows<kWidth>(sums[0], sums[level]);
  Rows<kWidth>& groups = sums[0];
  for (int64_t v = size * kGroups; v < vectors; ++v) {
    for (float& sum : groups[0]) sum += *next++;
  }
  for (size_t g = 1; g < kGroups; ++g) {
    for (size_t l = 0; l < kWidth; ++l) groups[0][l] += groups[g][l];
  }
  float total = 0;
  for (const float* end = numbers.data() + numbers.size(); next < end; ++next) total += *next;
  for (const float sum : groups[0]) total += sum;
  return total;
}

float mean_of(std::span<const float> numbers) {
  const float sum =
      std::ssize(numbers) < kLanes ? cascade_sum<1>(numbers) : cascade_sum<kLanes>(numbers);
  return sum / static_cast<float>(numbers.size());
}

}  // namespace

std::span<const float, 256> nf4_scale_map() {
  static const std::array<float, 256> map = make_scale_map();
  return map;
}

void nf4_scales(const Nf4Weight& weight, int64_t first, int64_t count, float* to) {
  const std::span<const float, 256> map = nf4_scale_map();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t block = first + i;
    to[i] = nf4_scale<float>(map[weight.absmax[block]], weight.nested[block / kNf4Nested],
                             weight.offset);
  }
}

void nf4_decode(const Nf4Weight& weight, int64_t first, int64_t count, float* to) {
  float scale = 0;
  for (int64_t i = first, known = -1; i < first + count; ++i) {
    if (i / kNf4Block != known) nf4_scales(weight, known = i / kNf4Block, 1, &scale);
    const unsigned both = weight.codes[i / 2];
    to[i - first] = nf4_number<float>(kNf4Levels[i % 2 == 0 ? both >> 4 : both & 15U], scale);
  }
}

void Nf4Coder::add(std::span<const float> piece, std::span<uint8_t> codes) {
  left_ -= std::ssize(piece);
  internal_check(left_ == 0 || (left_ > 0 && std::ssize(piece) % kNf4Block == 0),
                 "a piece of a weight that is no whole blocks");
  for (size_t begin = 0; begin < piece.size(); begin += kNf4Block) {
    const std::span<const float> block =
        piece.subspan(begin).first(std::min<size_t>(kNf4Block, piece.size() - begin));
    float largest = 0;
    for (const float number : block) largest = std::max(largest, std::fabs(number));
    // A short block's scale is kept above zero, and divides; others are multiplied by its inverse.
    const bool whole = block.size() == kNf4Block;
    const float divisor = std::max(largest, kSmallestScale), inverse = 1 / divisor;
    scales_.push_back(whole ? largest : divisor);
    Block scaled{};  // the half behind an odd last number is the level of 0
    for (size_t i = 0; i < block.size(); ++i) {
      scaled[i] = std::clamp(whole ? block[i] * inverse : block[i] / divisor, -1.0F, 1.0F);
    }
    const std::array<int32_t, kNf4Block> levels = nearest_levels(scaled);
    for (size_t i = 0; i < block.size(); i += 2) {
      codes[(begin + i) / 2] = static_cast<uint8_t>(levels[i] << 4 | levels[i + 1]);
    }
  }
}

Nf4Coder::Scales Nf4Coder::finish() const {
  internal_check(left_ == 0, "a weight without its last piece");
  Scales result;
  result.offset = mean_of(scales_);
  std::vector<float> rest(scales_);
  for (float& scale : rest) scale -= result.offset;
  for (size_t begin = 0; begin < rest.size(); begin += kNf4Nested) {
    const std::span<const float> group =
        std::span(rest).subspan(begin).first(std::min<size_t>(kNf4Nested, rest.size() - begin));
    float largest = 0;
    for (const float scale : group) largest = std::max(largest, std::fabs(scale));
    result.nested.push_back(largest);
    const float inverse = 1 / largest;
    for (const float scale : group) {
      result.absmax.push_back(largest == 0 ? uint8_t{0} : code_of_scale(scale * inverse));
    }
  }
  return result;
}

}  // namespace thimble
