#include "report/explain/value_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/bytes/allocation_timeline.h"
#include "plan/bytes/peak.h"

namespace thimble {
namespace {

constexpr double kMiB = 1 << 20;

std::string milliseconds(double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); }

class Explainer {
 public:
  explicit Explainer(const WhyRequest& request)
      : request_(request),
        graph_(request.graph),
        plan_(request.plan),
        residencies_(residencies_of(graph_, plan_)),
        readers_again_(recomputed_readers(graph_, plan_)),
        again_(graph_.nodes.size(), 0),
        at_peak_(graph_.values.size(), false) {
    for (const PlannedCall& call : plan_.calls) {
      if (call.recompute) ++again_[call.node.at()];
    }
    recomputes_ = std::ranges::any_of(again_, [](int times) { return times > 0; });
    for (const Allocation& allocation : allocations_of(graph_, plan_)) {
      if (allocation.first > plan_.peak_call || allocation.last < plan_.peak_call) continue;
      const Occupant& occupant = allocation.at_call(plan_.peak_call);
      if (occupant.value.valid()) at_peak_[occupant.value.at()] = true;
    }
    for (const KeptAs& kept : request.encoded) {
      encoded_[kept.value.at()] = &kept;
      for (const ValueId part : kept.code) code_of_[part.at()] = &kept;
    }
  }

  Why of(ValueId id) const {
    const Value& value = graph_[id];
    if (!value.producer.valid()) return of_source(value);
    const Node& maker = graph_[value.producer];
    if (is_persistent(value.role)) return {"kept between steps", "the next version, in place"};
    if (value.role == Role::gradient) return of_gradient();
    if (encoded_.contains(id.at())) return of_encoded(*encoded_.at(id.at()));
    if (maker.backward) {
      return {"on its way back",
              "a gradient: there from the call that makes it to the last reader"};
    }
    if (code_of_.contains(id.at())) {
      const Why fate = of_forward(id, maker);
      return {fate.fate, fmt::format("the {} code of '{}'; {}", code_of_.at(id.at())->codec,
                                     graph_[code_of_.at(id.at())->value].name, fate.reason)};
    }
    return of_forward(id, maker);
  }

 private:
  Why of_source(const Value& value) const {
    if (is_persistent(value.role)) {
      return {"kept between steps",
              value.role == Role::constant ? "never changes" : "the next step begins with it"};
    }
    return {"fed", "put in place before it runs; its bytes are free behind the last reader"};
  }

  Why of_gradient() const {
    if (plan_.microbatches > 1) {
      return {"kept", fmt::format("added up over {} microbatches, then read by the update",
                                  plan_.microbatches)};
    }
    return {"on its way back", "goes into its update as soon as it is complete"};
  }

  Why of_encoded(const KeptAs& kept) const {
    Bytes code;
    for (const ValueId part : kept.code) code += graph_[part].type.bytes();
    const Bytes whole = graph_[kept.value].type.bytes();
    return {"kept encoded", fmt::format("the backward pass reads it from {}: {} in place of {}",
                                        kept.codec, to_string(code), to_string(whole))};
  }

  Why of_forward(ValueId id, const Node& maker) const {
    switch (residencies_[id.at()]) {
      case ValueResidency::transient:
        return {"passing", again(graph_[id]) == 0
                               ? "no gradient reads it: gone when the forward pass is through"
                               : "no gradient reads it; recomputed where others are made of it"};
      case ValueResidency::recomputed:
        return {"recomputed", recomputed(id, maker)};
      case ValueResidency::kept:
        return {"kept", kept(id, maker)};
    }
    return {};
  }

  std::string recomputed(ValueId id, const Node& maker) const {
    if (maker.mark == Mark::recompute) return "as --recompute asks";
    const int times = again(graph_[id]);
    const double seconds = times * seconds_of(graph_[id].producer);
    const double price = seconds / mebibytes(id);
    std::string text = fmt::format("{} for {}: {} per MiB", milliseconds(seconds),
                                   to_string(graph_[id].type.bytes()), milliseconds(price));
    if (times > 1) text += fmt::format(", {} times", times);
    if (request_.price > 0 && price <= request_.price) {
      text += fmt::format(", below the {} that a MiB costs here", milliseconds(request_.price));
    }
    return text;
  }

  std::string kept(ValueId id, const Node& maker) const {
    if (maker.mark == Mark::keep) return "as --keep asks";
    if (maker.op->recompute == Recompute::never) {
      return fmt::format("'{}' may not run twice", maker.op->name);
    }
    if (!recomputes_) return "there is room: in this plan nothing is recomputed";
    const double seconds = seconds_to_remake(id);
    const double price = seconds / mebibytes(id);
    std::string text =
        fmt::format("computing it again would cost {} for {}: {} per MiB", milliseconds(seconds),
                    to_string(graph_[id].type.bytes()), milliseconds(price));
    if (request_.price > 0 && price > request_.price) {
      text += fmt::format(", above the {} that a MiB costs here", milliseconds(request_.price));
    } else if (const int readers = readers_again_[id.at()]; readers > 0) {
      text += fmt::format(", and {} recomputed from it",
                          readers == 1 ? "another is" : fmt::format("{} others are", readers));
    } else if (!at_peak_[id.at()]) {
      text += ", and it is not there when the arena is fullest";
    }
    return text;
  }

  // From values that are kept or recomputed anyway: its maker, and the makers of transient values.
  double seconds_to_remake(ValueId id) const {
    constexpr size_t kFar = 64;
    std::vector<NodeId> makers = {graph_[id].producer};
    double seconds = 0;
    for (size_t at = 0; at < makers.size() && at < kFar; ++at) {
      seconds += seconds_of(makers[at]);
      for (const ValueId input : graph_[makers[at]].inputs) {
        const NodeId maker = graph_[input].producer;
        const bool passes = maker.valid() && !graph_[maker].backward &&
                            residencies_[input.at()] == ValueResidency::transient &&
                            graph_[input].role == Role::activation;
        if (passes && std::ranges::find(makers, maker) == makers.end()) makers.push_back(maker);
      }
    }
    return seconds;
  }

  int again(const Value& value) const { return again_[value.producer.at()]; }
  double seconds_of(NodeId node) const { return request_.costs.nodes[node.at()].seconds; }
  double mebibytes(ValueId id) const {
    return static_cast<double>(std::max<int64_t>(1, graph_[id].type.bytes().count)) / kMiB;
  }

  const WhyRequest& request_;
  const Graph& graph_;
  const Plan& plan_;
  const std::vector<ValueResidency> residencies_;
  const std::vector<int> readers_again_;  // by value
  std::vector<int> again_;                // by node: repetitions
  std::vector<bool> at_peak_;             // by value
  bool recomputes_ = false;
  std::map<size_t, const KeptAs*> encoded_;  // by value
  std::map<size_t, const KeptAs*> code_of_;  // by part of a code
};

}  // namespace

std::vector<Why> explain_values(const WhyRequest& request) {
  const Explainer explainer(request);
  std::vector<Why> all;
  all.reserve(request.graph.values.size());
  for (size_t v = 0; v < request.graph.values.size(); ++v) {
    all.push_back(explainer.of(make_id<ValueId>(v)));
  }
  return all;
}

}  // namespace thimble
