#include "weights/initialize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/host/parallel.h"
#include "base/number/bits.h"
#include "base/number/philox.h"
#include "base/number/random_choice.h"
#include "transform/sparse_weights.h"
#include "weights/coded_tensors.h"
#include "weights/gather_shards.h"

namespace thimble {
namespace {

// Two independent normal deviates from two words (Box and Muller).
std::pair<double, double> normal_pair(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 0.5) * 0x1p-32;  // never 0
  const double v = static_cast<double>(b) * 0x1p-32;
  const double radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(2 * std::numbers::pi * v), radius * std::sin(2 * std::numbers::pi * v)};
}

// One tensor's numbers: element i has word i % 4 of its stream's block i / 4.
class Draws {
 public:
  Draws(const Init& init, uint64_t seed, std::string_view name)
      : init_(init), key_(philox_key(seed)), stream_(stable_hash(name)) {}

  double one(int64_t element) const {
    const size_t at = static_cast<size_t>(element % 4);
    switch (init_.kind) {
      case Init::Kind::normal: {
        const PhiloxCounter words = normal_words(element / 4);
        const auto [first, second] = normal_pair(words[at / 2 * 2], words[at / 2 * 2 + 1]);
        return init_.scale * (at % 2 == 0 ? first : second);
      }
      case Init::Kind::uniform:
        return uniform(uniform_words(element / 4)[at]);
      default:
        return same();
    }
  }

  // Elements [begin, end) to their places. REQUIRES: begin is a multiple of four.
  template <class T>
  void range(std::span<T> elements, int64_t begin, int64_t end) const {
    switch (init_.kind) {
      case Init::Kind::normal:
        return for_each_block(elements, begin, end, [&](int64_t block) {
          const PhiloxCounter words = normal_words(block);
          const auto [a, b] = normal_pair(words[0], words[1]);
          const auto [c, d] = normal_pair(words[2], words[3]);
          return std::array{init_.scale * a, init_.scale * b, init_.scale * c, init_.scale * d};
        });
      case Init::Kind::uniform:
        return for_each_block(elements, begin, end, [&](int64_t block) {
          const auto [a, b, c, d] = uniform_words(block);
          return std::array{uniform(a), uniform(b), uniform(c), uniform(d)};
        });
      default:
        std::fill(elements.begin() + begin, elements.begin() + end, static_cast<T>(same()));
    }
  }

 private:
  PhiloxCounter normal_words(int64_t block) const { return words(block, 0); }
  PhiloxCounter uniform_words(int64_t block) const { return words(block, 1); }
  PhiloxCounter words(int64_t block, uint32_t use) const {
    return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(stream_),
                   static_cast<uint32_t>(stream_ >> 32), use},
                  key_);
  }
  double uniform(uint32_t word) const {
    return init_.scale * (2 * static_cast<double>(uniform_from(word)) - 1);
  }
  // The value of all elements where none is drawn.
  double same() const { return init_.kind == Init::Kind::constant ? init_.scale : 0; }

  template <class T, class Block>
  static void for_each_block(std::span<T> elements, int64_t begin, int64_t end,
                             const Block& block) {
    for (int64_t at = begin; at < end; at += 4) {
      const std::array<double, 4> four = block(at / 4);
      const int64_t count = std::min<int64_t>(4, end - at);
      for (int64_t k = 0; k < count; ++k) {
        elements[static_cast<size_t>(at + k)] = static_cast<T>(four[static_cast<size_t>(k)]);
      }
    }
  }

  Init init_;
  PhiloxKey key_;
  uint64_t stream_;
};

// The numbers that a part has of the whole, zeros behind its end.
template <class T>
void draw_part(const Draws& draws, std::span<T> elements, int64_t first, const Value& value) {
  const int64_t held =
      std::clamp<int64_t>(value.unsharded.elements() - first, 0, std::ssize(elements));
  for (int64_t i = 0; i < std::ssize(elements); ++i) {
    elements[static_cast<size_t>(i)] = i < held ? static_cast<T>(draws.one(first + i)) : T{};
  }
}

// Ones of the masks at random places, and at each the number that the dense weight would start
// with.
void initialize_sparse(Program& program, const SparseWeights& sparse, uint64_t seed) {
  const Graph& graph = program.graph();
  const HostMapping pool = program.map_to_host(sparse.values, HostMapping::Use::change);
  int64_t next = 0;
  for (const SparseWeight& weight : sparse.weights) {
    const Value& dense = graph[weight.dense];
    const int64_t elements = dense.type.elements();
    const HostMapping mask_mapping = program.map_to_host(weight.mask, HostMapping::Use::write);
    const std::span<uint8_t> mask = mask_mapping.as<uint8_t>();
    std::fill(mask.begin(), mask.end(), uint8_t{0});
    RandomChoice choice(random_choice_key(seed, dense.name, "mask"), 0,
                        static_cast<int64_t>(graph[weight.mask].init.scale), elements);
    for (int64_t i = 0; i < elements; ++i) {
      if (choice.take()) set_bit(mask.data(), i);
    }
    program.write(weight.first, 0, std::as_bytes(std::span(&next, 1)));
    const Draws draws(dense.init, seed, dense.name);
    with_float_type(dense.type.dtype, [&]<class T>(TypeTag<T>) {
      const std::span<T> values = pool.as<T>();
      for_each_one(mask.data(), 0, elements, [&](int64_t at) {
        values[static_cast<size_t>(next++)] = static_cast<T>(draws.one(at));
      });
    });
  }
}

}  // namespace

void initialize(Program& program, uint64_t seed, const std::function<bool(ValueId)>& chosen) {
  constexpr int64_t kGrain = 1 << 15;  // elements: about half a millisecond of normal deviates
  const Graph& graph = program.graph();
  bool any_codes = false;  // a step may ask for its own values again, and allocates nothing
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const ValueId id = make_id<ValueId>(v);
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    if (chosen && !chosen(id)) continue;
    const bool places = value.init.kind == Init::Kind::mask || value.type.dtype == DType::i64;
    const bool codes = value.role == Role::frozen && value.type.dtype == DType::u8;
    any_codes = any_codes || codes;
    if (places || codes) continue;  // of sparse and of coded weights, below
    const Draws draws(value.init, seed, value.name);
    const HostMapping mapping = program.map_to_host(id, HostMapping::Use::write);
    with_any_type(value.type.dtype, [&]<class T>(TypeTag<T>) {
      const std::span<T> elements = mapping.as<T>();
      if (value.is_shard()) return draw_part(draws, elements, first_element(program, id), value);
      for_ranges(std::ssize(elements), kGrain,
                 [&](int64_t begin, int64_t end) { draws.range(elements, begin, end); });
    });
  }
  for (const CodedWeight& weight :
       any_codes ? find_coded_weights(graph) : std::vector<CodedWeight>()) {
    const Value& codes = graph[weight.values[0]];
    if (chosen && !chosen(weight.values[0])) continue;
    const Draws draws(codes.init, seed, codes.name);
    CodedWriter writer(program, weight);
    for (int64_t i = 0; i < weight.matrix.elements(); ++i) {
      const auto number = static_cast<float>(draws.one(i));
      writer.add({&number, 1});
    }
    writer.finish();
  }
  const ValueId pool = graph.find(kSparseValues);
  if (pool.valid() && (!chosen || chosen(pool))) {
    initialize_sparse(program, find_sparse_weights(graph), seed);
  }
}

}  // namespace thimble
