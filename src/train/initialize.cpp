#include "train/initialize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/bits.h"
#include "base/error.h"
#include "base/philox.h"
#include "train/random_choice.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

// Two independent normal deviates from two words (Box and Muller).
std::pair<double, double> normal_pair(uint32_t a, uint32_t b) {
  const double u = (static_cast<double>(a) + 0.5) * 0x1p-32;  // never 0
  const double v = static_cast<double>(b) * 0x1p-32;
  const double radius = std::sqrt(-2 * std::log(u));
  return {radius * std::cos(2 * std::numbers::pi * v), radius * std::sin(2 * std::numbers::pi * v)};
}

double draw(const Init& init, PhiloxKey key, uint64_t stream, int64_t element) {
  switch (init.kind) {
    case Init::Kind::zeros:
    case Init::Kind::mask:
      return 0;
    case Init::Kind::constant:
      return init.scale;
    case Init::Kind::normal: {
      const auto words = philox({static_cast<uint32_t>(element / 4), static_cast<uint32_t>(stream),
                                 static_cast<uint32_t>(stream >> 32), 0}, key);
      const size_t pair = static_cast<size_t>(element % 4) / 2;
      const auto [first, second] = normal_pair(words[2 * pair], words[2 * pair + 1]);
      return init.scale * (element % 2 == 0 ? first : second);
    }
    case Init::Kind::uniform: {
      const auto words = philox({static_cast<uint32_t>(element / 4), static_cast<uint32_t>(stream),
                                 static_cast<uint32_t>(stream >> 32), 1}, key);
      return init.scale *
             (2 * static_cast<double>(uniform_from(words[static_cast<size_t>(element % 4)])) - 1);
    }
  }
  return 0;
}

// Ones of the masks at random places, and at each the number that the dense weight would start
// with.
void initialize_sparse(Program& program, const SparseWeights& sparse, uint64_t seed) {
  const Graph& graph = program.graph();
  const Loan pool = program.borrow(sparse.values, Loan::Use::change);
  int64_t next = 0;
  for (const SparseWeight& weight : sparse.weights) {
    const Value& dense = graph[weight.dense];
    const int64_t elements = dense.type.elements();
    const Loan mask_loan = program.borrow(weight.mask, Loan::Use::write);
    const std::span<uint8_t> mask = mask_loan.as<uint8_t>();
    std::fill(mask.begin(), mask.end(), uint8_t{0});
    RandomChoice choice(random_choice_key(seed, dense.name, "mask"), 0,
                        static_cast<int64_t>(graph[weight.mask].init.scale), elements);
    for (int64_t i = 0; i < elements; ++i) {
      if (choice.take()) set_bit(mask.data(), i);
    }
    program.write(weight.first, 0, std::as_bytes(std::span(&next, 1)));
    const uint64_t stream = stable_hash(dense.name);
    with_float_type(dense.type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::span<T> values = pool.as<T>();
      for_each_one(mask.data(), 0, elements, [&](int64_t at) {
        values[static_cast<size_t>(next++)] =
            static_cast<T>(draw(dense.init, philox_key(seed), stream, at));
      });
    });
  }
}

}  // namespace

void initialize(Program& program, uint64_t seed, const std::function<bool(ValueId)>& chosen) {
  const PhiloxKey key = philox_key(seed);
  const Graph& graph = program.graph();
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const ValueId id = make_id<ValueId>(v);
    if (value.producer.valid() || !is_persistent(value.role)) continue;
    if (chosen && !chosen(id)) continue;
    const bool places = value.init.kind == Init::Kind::mask || value.type.dtype == DType::i64;
    if (places) continue;  // of sparse weights, below
    const uint64_t stream = stable_hash(value.name);
    const Loan loan = program.borrow(id, Loan::Use::write);
    with_any_type(value.type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const std::span<T> elements = loan.as<T>();
      for (size_t i = 0; i < elements.size(); ++i) {
        elements[i] = static_cast<T>(draw(value.init, key, stream, static_cast<int64_t>(i)));
      }
    });
  }
  const ValueId pool = graph.find(kSparseValues);
  if (pool.valid() && (!chosen || chosen(pool))) {
    initialize_sparse(program, find_sparse_weights(graph), seed);
  }
}

}  // namespace thimble
