// Low-rank adapters as a rewriting of forward nodes: beside every linear map that is a target
//
//   y = x W'   becomes   y = x W' + scale * (drop(x) A') B'
//
// with W frozen, as is every other weight. A and B are called as PEFT calls them: W.lora_A.weight
// [rank, in] and W.lora_B.weight [out, rank], W without its ".weight". They are f32, cast to what
// flows through; A starts uniform in +-1/sqrt(in), B as zeros.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "transform/fine_tuning.h"

namespace thimble {

// An adapter of a graph.
struct Adapter {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  ValueId a = {}, b = {};
  ValueId weight = {};  // that it is beside
};

// Freezes the weights and adds adapters. `rng` is the model's input of random numbers; dropout makes
// one where there is none. UserError where the targets match no linear layer.
void adapt(Graph& graph, const AdapterSpec& spec, ValueId& rng);

// In the order of their weights.
std::vector<Adapter> find_adapters(const Graph& graph);
bool is_adapter(std::string_view value_name);

}  // namespace thimble
