// Settings of fine-tuning: adapters (LoRA), and the format of frozen weights.
#pragma once

#include <optional>
#include <string>

#include "graph/coded_weight.h"

namespace thimble {

// Low-rank adapters beside linear layers (LoRA): y = x W' + scale * (drop(x) A') B', where W is
// frozen and A [rank, in], B [out, rank] are trained.
struct AdapterSpec {
  int64_t rank = 0;  // 0: none
  double alpha = 32;
  std::string targets = "linear";  // every linear layer but the head, names joined by +, or a regex
  double dropout = 0;              // of A's input
  bool rank_stabilised = false;    // rsLoRA

  bool enabled() const { return rank > 0; }
  // alpha / rank, or alpha / sqrt(rank).
  double scale() const;
  bool operator==(const AdapterSpec&) const = default;
};
// "rank=16,alpha=32,targets=q_proj+v_proj,dropout=0.05,rs"; UserError for anything else.
AdapterSpec parse_adapters(const std::string& text);
// As a user would type it; "none" without adapters.
std::string to_string(const AdapterSpec& spec);

struct FineTuning {
  AdapterSpec adapters;
  std::optional<CodedFormat> frozen;  // of frozen matrices; none: the type of activations

  bool operator==(const FineTuning&) const = default;
};

}  // namespace thimble
