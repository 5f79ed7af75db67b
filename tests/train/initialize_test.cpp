#include "weights/initialize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/number/philox.h"
#include "support/plan_cases.h"

namespace thimble {
namespace {

// The first value of element i of a tensor, each from its own words.
double drawn(const Init& init, uint64_t seed, const std::string& name, int64_t i) {
  const uint64_t stream = stable_hash(name);
  const auto words = [&](uint32_t use) {
    return philox({static_cast<uint32_t>(i / 4), static_cast<uint32_t>(stream),
                   static_cast<uint32_t>(stream >> 32), use},
                  philox_key(seed));
  };
  switch (init.kind) {
    case Init::Kind::constant:
      return init.scale;
    case Init::Kind::normal: {
      const size_t pair = i % 4 < 2 ? 0 : 2;
      const double u = (static_cast<double>(words(0)[pair]) + 0.5) / 4294967296.0;
      const double angle =
          2 * std::numbers::pi * (static_cast<double>(words(0)[pair + 1]) / 4294967296.0);
      const double radius = std::sqrt(-2 * std::log(u));
      return init.scale * (radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)));
    }
    case Init::Kind::uniform:
      return init.scale *
             (2 * static_cast<double>(uniform_from(words(1)[static_cast<size_t>(i % 4)])) - 1);
    default:
      return 0;
  }
}

// Sizes on both sides of a block of four, and of what is worth a thread.
TEST(Initialize, EveryElementHasTheNumberThatIsItsOwn) {
  constexpr uint64_t kSeed = 0x123456789abcu;
  using Kind = Init::Kind;
  struct Sort {
    Init init;
    std::vector<DType> dtypes;
  };
  const std::vector<DType> floats = {DType::f32, DType::f64, DType::f16, DType::bf16};
  const std::vector<DType> all = {DType::f32,  DType::f64, DType::f16,
                                  DType::bf16, DType::i32, DType::u8};
  Graph graph;
  Builder b(graph);
  for (const Sort& sort : {Sort{{Kind::zeros, 3}, all}, Sort{{Kind::constant, 7}, all},
                           Sort{{Kind::constant, -0.1}, floats}, Sort{{Kind::normal, 0.3}, floats},
                           Sort{{Kind::uniform, 0.7}, floats}}) {
    for (const DType dtype : sort.dtypes) {
      for (const int64_t size : {1, 2, 3, 4, 5, 7, 32767, 32768, 32769, 100'003}) {
        b.weight(fmt::format("w{}", graph.values.size()), {{size}, dtype}, sort.init);
      }
    }
  }
  graph.results = {b.op("relu", {b.input("x", kRow)})};
  const auto backend = make_backend("cpu", 1);
  const Plan plan =
      std::get<Plan>(make_plan({.graph = graph, .costs = gather_costs(graph, *backend)}));
  const auto arena = backend->allocate(plan.arena);
  std::memset(arena->base(), 0xA5, static_cast<size_t>(arena->size().count));
  Program program(graph, plan, *backend, *arena);
  initialize(program, kSeed);

  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.role != Role::weight) continue;
    with_any_type(value.type.dtype, [&]<class T>(TypeTag<T>) {
      const std::span<const T> found = program.view<T>(make_id<ValueId>(v));
      std::vector<T> expected;
      for (int64_t i = 0; i < std::ssize(found); ++i) {
        expected.push_back(static_cast<T>(drawn(value.init, kSeed, value.name, i)));
      }
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size_bytes()), 0)
          << to_string(value.type) << " of kind " << static_cast<int>(value.init.kind);
    });
  }
}

}  // namespace
}  // namespace thimble
