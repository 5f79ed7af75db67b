// Low-rank adapters (LoRA): beside every target linear map of the forward pass
//
//   y = x W'   becomes   y = x W' + scale * (drop(x) A') B'
//
// with all weights but A and B frozen. A and B are named as in PEFT: W.lora_A.weight [rank, in] and
// W.lora_B.weight [out, rank], W without its ".weight". They are f32, cast to the type of x. A
// starts uniform in +-1/sqrt(in), B as zeros.
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
  ValueId weight = {};    // the adapted matrix
  bool in_first = false;  // the weight is [in,out]
};

// Freezes the weights and adds adapters. `rng` is the model's input of random numbers; dropout
// makes one where there is none. `logits`: those of a graph without a loss. UserError where the
// targets match no linear layer.
void adapt(Graph& graph, const AdapterSpec& spec, ValueId& rng, ValueId logits = {});

// In the order of their weights.
std::vector<Adapter> find_adapters(const Graph& graph);
bool is_adapter(std::string_view value_name);

}  // namespace thimble
