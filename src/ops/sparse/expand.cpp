// expand(pool [T], first i64 [1], mask u8 [ceil(n / 8)]) -> dense weight of n elements; attr shape.
// Nonzeros go to the ones of the mask, zeros elsewhere. REQUIRES: first + ones of the mask <= T.
#include "graph/builder.h"
#include "ops/sparse/packed_weight.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("expand", inputs, 3);
  const Shape shape(attrs.integers("shape"));
  check_packed("expand", inputs[0], inputs[1], inputs[2], shape.elements());
  return {{shape, inputs[0].dtype}};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const int64_t total = g.build().type(g.input(0)).elements();
  g.give(0, g.build().op("gather", {g.upstream(), g.input(1), g.input(2)}, {{"total", total}}));
}

void reference(const KernelArgs& args) {
  const int64_t elements = args.outputs[0].elements();
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* next = args.inputs[0].as<T>() + *args.inputs[1].as<int64_t>();
    T* dense = args.outputs[0].as<T>();
    for (int64_t i = 0; i < elements; ++i) dense[i] = T{};
    for_each_one(args.inputs[2].as<uint8_t>(), 0, elements,
                 [&](int64_t at) { dense[at] = *next++; });
  });
}

// At most as many nonzeros as elements are read, however large the pool is.
Work work(const Signature& s) {
  return {0, static_cast<double>((s.outputs[0].bytes() * 2 + s.inputs[2].bytes()).count)};
}

std::vector<Sample> samples() {
  const auto sample = [](std::vector<int64_t> shape, int64_t total, double first) {
    const int64_t mask = bitmap_bytes(Shape(shape).elements());
    return Sample{.inputs = {{{total}}, {{1}, DType::i64}, {{mask}, DType::u8}},
                  .attrs = {{"shape", std::move(shape)}},
                  .fills = {{}, {Fill::Kind::labels, first, first + 1}, {Fill::Kind::bytes}},
                  .differentiate = {0}};
  };
  return {sample({3, 7}, 25, 2), sample({4, 3, 3, 5}, 200, 0), sample({16, 16}, 300, 44),
          sample({1}, 5, 4)};
}

}  // namespace

extern const OpDef op_expand{
    .name = "expand",
    .summary = "a sparse weight in full, for those who read it",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .work = work,
    .samples = samples,
    .expands = true,
};

}  // namespace thimble
