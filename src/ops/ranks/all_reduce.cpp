// all_reduce(x) -> y: the sum of all ranks' x, in the order of the ranks; attr ranks. Added into, it is
// ((y + x0) + x1) + ..., where every rank has the same y.
#include "ops/ranks/collective.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_one_floating("all_reduce", inputs);
  check_parts("all_reduce", inputs[0], shard_ranges(inputs[0].elements(), attrs));
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  const ShardRanges g = shard_ranges(args.inputs[0].elements(), *args.attrs);
  RanksOf ranks(args, g.ranks);
  with_float_type(args.inputs[0].type.dtype, [&]<class T>(TypeTag<T>) {
    sum_all(*ranks, g, args.inputs[0].as<T>(), args.outputs[0].as<T>(), args.adds_into(0),
            args.workspace, sum_in_order<T>);
  });
}

Bytes workspace(const Signature& s) {
  return staging_bytes(shard_ranges(s.inputs[0].elements(), s.attrs), s.inputs[0].dtype);
}

Work work(const Signature& s) {
  return {static_cast<double>(s.inputs[0].elements()),
          4 * static_cast<double>(s.inputs[0].bytes().count)};
}

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{1}}}},
          {.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{4}}}},
          {.inputs = {{{2}}}, .attrs = {{"ranks", int64_t{3}}}, .accumulate = 1},
          {.inputs = {{{3, 70, 64}}}, .attrs = {{"ranks", int64_t{2}}}, .accumulate = 1}};
}

}  // namespace

extern const OpDef op_all_reduce{
    .name = "all_reduce",
    .summary = "sum over the ranks, for all of them",
    .infer = infer,
    .reference = reference,
    .reference_workspace = workspace,
    .work = work,
    .samples = samples,
    .recompute = Recompute::never,
    .in_place = {{0, 0}},
    .collective = true,
    .accumulates = 1,
};

}  // namespace thimble
