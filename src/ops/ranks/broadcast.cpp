// broadcast(x) -> y: what rank `root` (0) has, for all of them. attrs ranks, root.
#include "ops/ranks/collective.h"

namespace thimble {
namespace {

std::vector<TensorType> infer(std::span<const TensorType> inputs, const Attrs& attrs) {
  check_inputs("broadcast", inputs, 1);
  const int64_t root = attrs.integer("root", 0), ranks = attrs.integer("ranks");
  user_check(root >= 0 && root < ranks, "[broadcast] rank {} is none of {}", root, ranks);
  return {inputs[0]};
}

void reference(const KernelArgs& args) {
  const size_t bytes = static_cast<size_t>(args.inputs[0].type.bytes().count);
  std::byte* const to = args.outputs[0].as<std::byte>();
  const std::byte* const from = args.inputs[0].as<std::byte>();
  if (from != to) std::copy_n(from, bytes, to);
  RanksOf ranks(args, static_cast<int>(args.attrs->integer("ranks")));
  ranks->broadcast({to, bytes}, static_cast<int>(args.attrs->integer("root", 0)));
}

std::vector<Sample> samples() {
  return {{.inputs = {{{5, 7}}}, .attrs = {{"ranks", int64_t{4}}}},
          {.inputs = {{{35}, DType::i32}}, .attrs = {{"ranks", int64_t{2}}, {"root", int64_t{1}}}}};
}

}  // namespace

extern const OpDef op_broadcast{
    .name = "broadcast",
    .summary = "what one rank has, for all of them",
    .infer = infer,
    .reference = reference,
    .samples = samples,
    .recompute = Recompute::never,
    .in_place = {{0, 0}},
    .collective = true,
};

}  // namespace thimble
