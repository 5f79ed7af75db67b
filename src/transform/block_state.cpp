#include "transform/block_state.h"

#include <algorithm>

#include "base/number/dynamic_quantization.h"

namespace thimble {
namespace {

// The gathers that `gradient` is the sum of, in order; none where others have a part in it.
std::vector<NodeId> gathers_of(const Graph& graph, ValueId gradient) {
  std::vector<NodeId> gathers;
  for (ValueId sum = gradient; sum.valid();) {
    const NodeId maker = graph[sum].producer;
    if (!maker.valid() || !graph[maker].op->packs) return {};
    gathers.push_back(maker);
    sum = graph[maker].added_into(0);
  }
  std::reverse(gathers.begin(), gathers.end());
  return gathers;
}

// Puts a fold in the place of a gather: the value that was the pool's gradient so far becomes the
// codes, and the scales are new.
BlockState replace_gather(Builder& b, NodeId gather, std::vector<ValueId> inputs, Attrs attrs) {
  Graph& graph = b.graph();
  const Value codes = graph[inputs[0]], scales = graph[inputs[1]];
  const ValueId sum = graph[gather].outputs[0];
  graph[sum].type = codes.type;
  graph[sum].role = codes.role;
  const ValueId sum_scales = make_id<ValueId>(graph.values.size());
  graph.values.push_back({.name = graph[sum].name + ".scales",
                          .type = scales.type,
                          .role = scales.role,
                          .producer = gather});
  Node& node = graph[gather];
  node.op = find_op("gather_fold_8bit");
  node.inputs = std::move(inputs);
  node.outputs = {sum, sum_scales};
  node.accumulate.clear();
  node.attrs = std::move(attrs);
  return {sum, sum_scales};
}

}  // namespace

bool wants_8bit_state(const Builder& b, ValueId w, const OptimizerSpec& spec) {
  return spec.state_bits == 8 && b.type(w).elements() >= kCodeBlock;
}

void set_unsharded(Graph& graph, ValueId state, ValueId w, ValueId own) {
  if (graph[w].is_shard()) {
    graph[state].unsharded = graph[w].unsharded;
  } else if (own != w) {
    graph[state].unsharded = graph[w].type.shape;
  }
}

BlockState add_block_state(Builder& b, ValueId w, ValueId own, const std::string& what) {
  const std::string name = b.graph()[w].name + "." + what;
  const TensorType type = b.type(own);
  const BlockState state = {
      b.state(name, {type.shape, DType::u8}),
      b.state(name + ".scales", {{code_blocks(type.elements())}, DType::f32})};
  Graph& graph = b.graph();
  set_unsharded(graph, state.codes, w, own);
  if (graph[state.codes].is_shard()) {
    graph[state.scales].unsharded = {code_blocks(graph[state.codes].unsharded.elements())};
  }
  return state;
}

BlockState add_fold_start(Builder& b, ValueId w, const OptimizerSpec& spec,
                          const std::string& name) {
  const BlockState m = add_block_state(b, w, w, "momentum");
  const auto decayed =
      b.apply("momentum_decay_8bit", {m.codes, m.scales, w},
              {{"momentum", spec.momentum}, {"weight_decay", decay_of(b.graph(), w, spec)}});
  b.graph()[decayed[0]].name = name;
  b.graph()[decayed[1]].name = name + ".scales";
  return {decayed[0], decayed[1]};
}

BlockState add_folding(Builder& b, const BlockState& momentum, ValueId gradient, ValueId rng,
                       ValueId factor) {
  const auto inputs_of = [&](std::vector<ValueId> own) {
    own.push_back(rng);
    if (factor.valid()) own.push_back(factor);
    return own;
  };
  const auto attrs = [&] {
    return Attrs{{"stream", b.next_random_stream()}, {"scaled", int64_t{factor.valid()}}};
  };
  const std::vector<NodeId> gathers = gathers_of(b.graph(), gradient);
  if (gathers.empty()) {
    const auto sum = b.apply("momentum_fold_8bit",
                             inputs_of({momentum.codes, momentum.scales, gradient}), attrs());
    return {sum[0], sum[1]};
  }
  BlockState sum = momentum;
  for (const NodeId gather : gathers) {
    const Node& node = b.graph()[gather];
    sum = replace_gather(
        b, gather,
        inputs_of({sum.codes, sum.scales, node.inputs[0], node.inputs[1], node.inputs[2]}),
        attrs());
  }
  return sum;
}

}  // namespace thimble
