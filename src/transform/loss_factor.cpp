#include "transform/loss_factor.h"

#include <algorithm>
#include <map>

#include "transform/accumulate.h"

namespace thimble {
namespace {

// Computes a value once more, of other arguments.
class Again {
 public:
  Again(Builder& b, std::map<ValueId, ValueId> of) : b_(b), made_(std::move(of)) {}

  ValueId value(ValueId original) {
    if (const auto found = made_.find(original); found != made_.end()) return found->second;
    const NodeId producer = b_.graph()[original].producer;
    if (!producer.valid()) return original;
    const Node node = b_.graph()[producer];
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(value(input));
    const std::vector<ValueId> outputs = b_.apply(node.op->name, std::move(inputs), node.attrs);
    for (size_t k = 0; k < outputs.size(); ++k) made_[node.outputs[k]] = outputs[k];
    return made_.at(original);
  }

 private:
  Builder& b_;
  std::map<ValueId, ValueId> made_;
};

}  // namespace

ValueId add_loss_factor(Graph& graph, const LossFactor& factor, const RanksSpec& ranks,
                        bool several_microbatches) {
  Builder b(graph);
  b.set_backward(true);
  std::vector<ValueId> totals = factor.sums;
  if (ranks.several()) {
    for (ValueId& total : totals) total = add_sum_over_ranks(b, total, ranks);
  }
  if (several_microbatches) {
    std::vector<Accumulation> growths;
    for (size_t i = 0; i < totals.size(); ++i) {
      growths.push_back(
          {add_zero(graph, totals[i], fmt::format("loss_weight{}.sum", i)), totals[i]});
    }
    totals = accumulate_into(graph, growths);
  }
  std::map<ValueId, ValueId> arguments;
  for (size_t i = 0; i < totals.size(); ++i) arguments[factor.arguments[i]] = totals[i];
  b.set_phase(several_microbatches ? Phase::epilogue : Phase::per_microbatch);
  ValueId weight = Again(b, std::move(arguments)).value(factor.weight);
  if (b.shape(weight) != Shape{1}) {
    weight = b.op("reshape", {weight}, {{"shape", std::vector<int64_t>{1}}});
  }
  weight = b.op("scale", {weight}, {{"factor", factor.divides ? factor.guess : 1 / factor.guess}});
  return factor.divides ? b.op("map", {weight}, {{"of", std::string("reciprocal")}}) : weight;
}

}  // namespace thimble
