// gather(dense gradient of n elements, first i64 [1], mask u8 [ceil(n / 8)]) -> pool [T]; attr
// total = T. The gradient at the ones of the mask, from `first` on; zeros around it. Added into, it
// touches its own part of the pool only. REQUIRES: first + ones of the mask <= T.
#include "ops/sparse/packed_weight.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("gather", inputs, 3);
  check_floating("gather", "gradient", inputs[0]);
  const int64_t total = attrs.integer("total");
  user_check(total >= 1, "[gather] wants a pool of at least one element, got {}", total);
  const TensorType pool = {{total}, inputs[0].dtype};
  check_packed("gather", pool, inputs[1], inputs[2], inputs[0].elements());
  return {pool};
}

void reference(const KernelArgs& args) {
  const bool adds = args.adds_into(0);
  with_float_type(args.outputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const T* dense = args.inputs[0].as<T>();
    T* pool = args.outputs[0].as<T>();
    if (!adds) {
      for (int64_t i = 0; i < args.outputs[0].elements(); ++i) pool[i] = T{};
    }
    int64_t next = *args.inputs[1].as<int64_t>();
    for_each_one(args.inputs[2].as<uint8_t>(), 0, args.inputs[0].elements(),
                 [&](int64_t at) { store(pool, next++, widen(dense[at]), adds); });
  });
}

// Of the pool, at most as many elements as the gradient has are read and written when adding.
Work work(const Signature& s) {
  const auto dense = static_cast<double>((s.inputs[0].bytes() + s.inputs[2].bytes()).count);
  if (s.accumulate == 0) return {0, dense + static_cast<double>(s.outputs[0].bytes().count)};
  return {static_cast<double>(s.inputs[0].elements()), 3 * dense};
}

std::vector<Sample> samples() {
  const auto sample = [](Shape dense, int64_t total, double first, uint32_t accumulate) {
    const int64_t mask = bitmap_bytes(dense.elements());
    return Sample{.inputs = {{dense}, {{1}, DType::i64}, {{mask}, DType::u8}},
                  .attrs = {{"total", total}},
                  .fills = {{}, {Fill::Kind::labels, first, first + 1}, {Fill::Kind::bytes}},
                  .accumulate = accumulate};
  };
  return {sample({3, 7}, 25, 2, 0), sample({4, 3, 3, 5}, 200, 0, 1), sample({16, 16}, 300, 44, 1),
          sample({1}, 5, 4, 0)};
}

}  // namespace

extern const OpDef op_gather{
    .name = "gather",
    .summary = "gradient of expand: what belongs to the nonzeros of a sparse weight",
    .infer = infer,
    .reference = reference,
    .work = work,
    .samples = samples,
    .packs = true,
    .accumulates = 1,
};

}  // namespace thimble
