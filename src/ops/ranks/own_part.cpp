// own_part(x) -> [part]: this rank's part of what every rank has, zeros behind the tensor's end. attrs
// ranks, part.
#include "ops/ranks/collective.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("own_part", inputs, 1);
  const ShardRanges g = shard_ranges(inputs[0].elements(), attrs);
  check_parts("own_part", inputs[0], g);
  return {{{g.part}, inputs[0].dtype}};
}

void reference(const KernelArgs& args) {
  const ShardRanges g = shard_ranges(args.inputs[0].elements(), *args.attrs);
  const int rank = RanksOf(args, g.ranks)->rank();
  with_any_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    const int64_t held = g.held(rank, 0, g.part);
    if (held > 0)
      std::copy_n(args.inputs[0].as<T>() + g.begin(rank), held, args.outputs[0].as<T>());
    std::fill_n(args.outputs[0].as<T>() + held, g.part - held, T{});
  });
}

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{1}}, {"part", int64_t{40}}}},
          {.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{4}}, {"part", int64_t{9}}}}};
}

}  // namespace

extern const OpDef op_own_part{
    .name = "own_part",
    .summary = "this rank's part of a tensor",
    .infer = infer,
    .reference = reference,
    .samples = samples,
};

}  // namespace thimble
