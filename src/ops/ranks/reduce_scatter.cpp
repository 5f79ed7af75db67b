// reduce_scatter(x) -> own [part]: this rank's part of the sum of all ranks' x, in the order of the
// ranks; zeros behind the tensor's end. attrs ranks, part. Added into, as all_reduce.
#include "ops/ranks/collective.h"

namespace thimble {
namespace {

ShardRanges geometry(const TensorType& x, const Attrs& attrs) {
  return shard_ranges(x.elements(), attrs);
}

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("reduce_scatter", inputs);
  const ShardRanges g = geometry(inputs[0], attrs);
  check_parts("reduce_scatter", inputs[0], g);
  return {{{g.part}, inputs[0].dtype}};
}

void reference(const KernelArgs& args) {
  const ShardRanges g = geometry(args.inputs[0].type, *args.attrs);
  RanksOf ranks(args, g.ranks);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    sum_own_part(*ranks, g, args.inputs[0].as<T>(), args.outputs[0].as<T>(), args.adds_into(0),
                 PartPadding::zeros, args.workspace, sum_in_order<T>);
  });
}

Bytes workspace(const Signature& s) {
  return staging_bytes(geometry(s.inputs[0], s.attrs), s.inputs[0].dtype);
}

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{1}}, {"part", int64_t{35}}}},
          {.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{4}}, {"part", int64_t{9}}}},
          {.inputs = {{{3, 70, 64}}},
           .attrs = {{"ranks", int64_t{2}}, {"part", int64_t{6912}}},
           .accumulate = 1}};
}

}  // namespace

extern const OpDef op_reduce_scatter{
    .name = "reduce_scatter",
    .summary = "sum over the ranks, a part for each of them",
    .infer = infer,
    .reference = reference,
    .reference_workspace = workspace,
    .samples = samples,
    .recompute = Recompute::never,
    .collective = true,
    .accumulates = 1,
};

}  // namespace thimble
