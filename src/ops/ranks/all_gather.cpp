// all_gather(own [part]) -> whole: the parts of all ranks, one after the other. attrs ranks, part and the
// whole's shape. The one collective that may be run again: all ranks run the same plan, so that all of
// them do.
#include "graph/builder.h"
#include "ops/ranks/collective.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("all_gather", inputs, 1);
  const TensorType whole = {Shape(attrs.integers("shape")), inputs[0].dtype};
  const ShardRanges g = shard_ranges(whole.elements(), attrs);
  check_parts("all_gather", whole, g);
  check_type("all_gather", "part", inputs[0], {{g.part}, inputs[0].dtype});
  return {whole};
}

void gradient(GradientBuilder& g) {
  if (!g.wants(0)) return;
  const Attrs parts = {{"ranks", g.attrs().integer("ranks")}, {"part", g.attrs().integer("part")}};
  g.give(0, g.build().op("reduce_scatter", {g.upstream()}, parts));
}

void reference(const KernelArgs& args) { gather_from(args, args.inputs[0], args.outputs[0]); }

std::vector<Sample> samples() {
  const std::vector<int64_t> shape = {5, 7};
  return {
      {.inputs = {{{35}}},
       .attrs = {{"ranks", int64_t{1}}, {"part", int64_t{35}}, {"shape", shape}},
       .differentiate = {0}},
      {.inputs = {{{9}}}, .attrs = {{"ranks", int64_t{4}}, {"part", int64_t{9}}, {"shape", shape}}},
      {.inputs = {{{16}}},
       .attrs = {{"ranks", int64_t{4}}, {"part", int64_t{16}}, {"shape", shape}}}};
}

}  // namespace

extern const OpDef op_all_gather{
    .name = "all_gather",
    .summary = "the parts of all ranks, for all of them",
    .infer = infer,
    .gradient = gradient,
    .reference = reference,
    .samples = samples,
    .recompute = Recompute::costly,
    .collective = true,
};

}  // namespace thimble
