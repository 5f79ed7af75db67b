#include "transform/block_state.h"

#include "base/dynamic_code.h"

namespace thimble {

bool wants_8bit_state(const Builder& b, ValueId w, const OptimizerSpec& spec) {
  return spec.state_bits == 8 && b.type(w).elements() >= kCodeBlock;
}

BlockState add_block_state(Builder& b, ValueId w, const std::string& what) {
  const std::string name = b.graph()[w].name + "." + what;
  const TensorType type = b.type(w);
  return {b.state(name, {type.shape, DType::u8}),
          b.state(name + ".scales", {{code_blocks(type.elements())}, DType::f32})};
}

BlockState add_fold_start(Builder& b, ValueId w, const OptimizerSpec& spec,
                          const std::string& name) {
  const BlockState m = add_block_state(b, w, "momentum");
  const auto decayed = b.apply("momentum_decay_8bit", {m.codes, m.scales, w},
                               {{"momentum", spec.momentum}, {"weight_decay", spec.weight_decay}});
  b.graph()[decayed[0]].name = name;
  b.graph()[decayed[1]].name = name + ".scales";
  return {decayed[0], decayed[1]};
}

BlockState add_folding(Builder& b, const BlockState& momentum, ValueId gradient, ValueId rng) {
  const auto sum = b.apply("momentum_fold_8bit", {momentum.codes, momentum.scales, gradient, rng},
                           {{"stream", b.next_random_stream()}});
  return {sum[0], sum[1]};
}

}  // namespace thimble
