#include "transform/numerics_tier.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"exact", "equivalent", "approximate"};

// Whether what becomes of one row depends on the others.
bool mixes_rows(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const Node& node) { return node.op->mixes_rows; });
}

// State does not count: --state-bits is judged by itself.
bool stores_sixteen_bits(const Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(), [](const Value& value) {
    return value.role != Role::optimizer_state &&
           (value.type.dtype == DType::f16 || value.type.dtype == DType::bf16);
  });
}

// Frozen matrices that are rounded to a format of few bits.
bool codes_frozen(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op->decodes; });
}

// Packed nonzeros, even if they are all there, give their squares to the common norm as one sum.
bool sums_norm_otherwise(const Graph& graph, const OptimizerSpec& optimizer) {
  return optimizer.clip_norm > 0 && !find_sparse_weights(graph).empty();
}

}  // namespace

std::string_view name_of(NumericsTier tier) { return kNames[static_cast<size_t>(tier)]; }

NumericsTier parse_tier(std::string_view name) {
  for (size_t t = 0; t < kNames.size(); ++t) {
    if (kNames[t] == name) return static_cast<NumericsTier>(t);
  }
  user_error("there is no tier '{}'; known: exact, equivalent, approximate", name);
}

NumericsTier tier_of(const Graph& graph, int microbatches, const OptimizerSpec& optimizer) {
  if (stores_sixteen_bits(graph) || codes_frozen(graph) || sparsity_of(graph).density() < 1)
    return NumericsTier::approximate;
  if (microbatches > 1 && mixes_rows(graph)) return NumericsTier::approximate;
  if (optimizer.state_bits < 32) return NumericsTier::approximate;
  if (sums_norm_otherwise(graph, optimizer)) return NumericsTier::equivalent;
  return microbatches > 1 || optimizer.fold ? NumericsTier::equivalent : NumericsTier::exact;
}

void check_allowed(const Graph& graph, NumericsTier tier, NumericsTier allowed, int microbatches,
                   const OptimizerSpec& optimizer) {
  if (tier <= allowed) return;
  if (codes_frozen(graph)) {
    user_error("frozen weights in few bits are approximate, and --allow is {}; leave --frozen out",
               name_of(allowed));
  }
  if (stores_sixteen_bits(graph)) {
    user_error("16-bit numbers are approximate, and --allow is {}; choose --precision fp32",
               name_of(allowed));
  }
  if (tier == NumericsTier::approximate && optimizer.state_bits < 32) {
    user_error(
        "optimizer state in {} bits is approximate, and --allow is {}; leave --state-bits out",
        optimizer.state_bits, name_of(allowed));
  }
  if (sparsity_of(graph).density() < 1) {
    user_error("sparse weights are approximate, and --allow is {}; leave --density out",
               name_of(allowed));
  }
  if (tier == NumericsTier::approximate) {
    user_error(
        "batch norm over microbatches uses the statistics of each, which is approximate, and "
        "--allow is {}; choose --norm group, or leave --microbatch out",
        name_of(allowed));
  }
  if (microbatches == 1 && !optimizer.fold) {
    user_error(
        "the norm of packed weights is summed in another order than that of dense ones, which is "
        "equivalent, and --allow is {}; leave --density out, or --clip-norm",
        name_of(allowed));
  }
  user_error(
      "{} sums in another order than the whole batch would, which is equivalent, and --allow "
      "is {}; leave {} out",
      microbatches > 1 ? "a step in microbatches" : "a step with folded gradients",
      name_of(allowed),
      microbatches > 1 && optimizer.fold ? "--microbatch and --fold"
      : microbatches > 1                 ? "--microbatch"
                                         : "--fold");
}

}  // namespace thimble
