// gather_update(w, own [part]) -> w: the next version of w is made of the parts of all ranks. attrs
// ranks, part.
#include "ops/ranks/collective.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("gather_update", inputs, 2);
  const ShardRanges g = shard_ranges(inputs[0].elements(), attrs);
  check_parts("gather_update", inputs[0], g);
  check_type("gather_update", "part", inputs[1], {{g.part}, inputs[0].dtype});
  return {inputs[0]};
}

void reference(const KernelArgs& args) { gather_from(args, args.inputs[1], args.outputs[0]); }

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}, {{35}}}, .attrs = {{"ranks", int64_t{1}}, {"part", int64_t{35}}}},
          {.inputs = {{{5, 7}}, {{9}}}, .attrs = {{"ranks", int64_t{4}}, {"part", int64_t{9}}}}};
}

}  // namespace

extern const OpDef op_gather_update{
    .name = "gather_update",
    .summary = "a weight made anew of the parts of all ranks",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .recompute = Recompute::never,
    .updates = {{0, 0}},
    .collective = true,
};

}  // namespace thimble
