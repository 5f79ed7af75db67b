#include "transform/optimizer.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number/dynamic_quantization.h"
#include "graph/builder.h"
#include "transform/accumulate.h"
#include "transform/block_state.h"
#include "transform/clip.h"
#include "transform/sparse_weights.h"

namespace thimble {
namespace {

constexpr std::string_view kUpdateScope = "update";  // of all that updates are made of
constexpr std::array<std::string_view, 3> kRoundings = {"nearest", "stochastic", "kahan"};

// In 8 bits.
bool rounds_at_random(const UpdateRule& rule) {
  return std::ranges::any_of(rule.states, [](const RuleState& state) { return state.stochastic; });
}

// Whether any update reads the number of the step.
bool reads_step(const OptimizerSpec& spec) {
  const UpdateRule& rule = rule_of(spec);
  return rule.reads_step || (spec.state_bits == 8 && rounds_at_random(rule));
}

// The rule that updates go by: without momentum, one that keeps none.
const UpdateRule& running_rule(const OptimizerSpec& spec) {
  const UpdateRule& rule = rule_of(spec);
  const bool stands_still = rule.momentum && spec.momentum == 0 && !rule.without_momentum.empty();
  return stands_still ? *find_update_rule(rule.without_momentum) : rule;
}

Attrs settings_of(const UpdateRule& rule, OptimizerSpec spec, double decay) {
  spec.weight_decay = decay;
  Attrs attrs;
  if (rule.op.empty()) attrs.set("rule", std::string(rule.name));
  for (const HyperParameter& hyper : hyper_parameters()) {
    if (hyper.usual(rule)) attrs.set(hyper.attr, spec.*hyper.member);
  }
  return attrs;
}

// The update nodes of one step: what the rounding and the scale of the loss add to their inputs
// and settings.
class UpdateNodes {
 public:
  UpdateNodes(Builder& b, const OptimizerSpec& spec, const OptimizerInputs& scalars,
              const RanksSpec& ranks, WeightSettings otherwise = {})
      : b_(b),
        spec_(spec),
        scalars_(scalars),
        ranks_(ranks),
        otherwise_(std::move(otherwise)),
        rule_(running_rule(spec)) {}

  // w moves by its gradient, times `factor` where that is valid.
  void add(ValueId w, ValueId g, ValueId factor) {
    const auto own = otherwise_.find(b_.graph()[w].name);
    const bool usual = own == otherwise_.end();
    rate_ = usual ? scalars_.learning_rate : rate_of(own->second.rate);
    const double decay = decay_of(b_.graph(), w, spec_);
    const Attrs settings =
        settings_of(rule_, spec_, usual ? decay : own->second.decay.value_or(decay));
    if (spec_.fold) {  // g is the new momentum, weight decay included
      add_node("update", folded_rule(), w, {w, g}, {}, factor, {{"weight_decay", 0.0}});
    } else if (!rule_.op.empty()) {
      add_node(rule_.op, rule_, w, with_factored_state(w, g), {}, factor, settings);
    } else if (ranks_.parts() && !b_.graph()[w].is_shard()) {
      // g is a part; what becomes of this rank's, all get.
      const Attrs parts = part_attrs(ranks_, b_.type(w).elements(), shard_granularity(spec_));
      const ValueId part = b_.op("own_part", {w}, parts);
      b_.graph()[part].unsharded = b_.shape(w);
      b_.apply("gather_update", {w, add_with_state(w, part, g, factor, settings)}, parts);
    } else {
      add_with_state(w, w, g, factor, settings);
    }
  }

  // The same where gradients are folded into momentum in 8 bits.
  void add_folded(ValueId w, const BlockState& momentum) {
    add_node("update_8bit", folded_rule(), w, {w, momentum.codes}, {momentum.scales}, {},
             {{"weight_decay", 0.0}});
  }

 private:
  // That of the run, times a factor.
  ValueId rate_of(double factor) {
    if (factor == 1) return scalars_.learning_rate;
    ValueId& rate = rates_[factor];
    if (!rate.valid()) rate = b_.op("scale", {scalars_.learning_rate}, {{"factor", factor}});
    return rate;
  }
  std::string name_of(ValueId w, const RuleState& state) const {
    return fmt::format("{}.{}", b_.graph()[w].name, state.name);
  }

  // Updates `own`, which is w or this rank's part of it; returns what becomes of it.
  ValueId add_with_state(ValueId w, ValueId own, ValueId g, ValueId factor, const Attrs& settings) {
    const bool coded = rule_.states.size() > 0 && wants_8bit_state(b_, own, spec_);
    std::vector<ValueId> inputs = {own, g};
    for (const RuleState& state : rule_.states) {
      if (coded) {
        const BlockState blocks = add_block_state(b_, w, own, std::string(state.name));
        inputs.insert(inputs.end(), {blocks.codes, blocks.scales});
        continue;
      }
      const DType dtype = spec_.state_bits == 16 ? DType::bf16
                          : state.like_gradient  ? b_.type(g).dtype
                                                 : DType::f32;
      inputs.push_back(b_.state(name_of(w, state), {b_.shape(own), dtype}));
      set_unsharded(b_.graph(), inputs.back(), w, own);
    }
    return add_node(coded ? "update_8bit" : "update", rule_, w, std::move(inputs), {}, factor,
                    settings);
  }
  const UpdateRule& folded_rule() const {
    return *find_update_rule(rule_of(spec_).without_momentum);
  }

  std::vector<ValueId> with_factored_state(ValueId w, ValueId g) {
    const Shape shape = b_.shape(w);
    std::vector<ValueId> inputs = {w, g};
    if (shape.rank() < 2) {
      for (const RuleState& state : rule_.of_vectors) {
        inputs.push_back(b_.state(name_of(w, state), {shape, DType::f32}));
      }
      return inputs;
    }
    const int64_t lengths[] = {shape[0], shape.elements() / shape[0]};
    for (size_t k = 0; k < rule_.states.size(); ++k) {
      inputs.push_back(b_.state(name_of(w, rule_.states[k]), {{lengths[k]}, DType::f32}));
    }
    return inputs;
  }

  // op(tensors..., [compensation,] scalars..., behind_scalars..., [factor,] [key]).
  ValueId add_node(std::string_view op, const UpdateRule& rule, ValueId w,
                   std::vector<ValueId> inputs, const std::vector<ValueId>& behind_scalars,
                   ValueId factor, Attrs attrs) {
    const bool coded = op == "update_8bit";
    if (rule.op.empty()) attrs.set("rule", std::string(rule.name));
    const DType dtype = b_.type(w).dtype;
    const bool rounds = dtype == DType::f16 || dtype == DType::bf16;
    const Rounding rounding = rounds ? spec_.rounding : Rounding::nearest;
    const ValueId own = inputs[0];
    if (rounding == Rounding::kahan) {
      inputs.push_back(b_.state(b_.graph()[w].name + ".compensation", b_.type(own)));
      set_unsharded(b_.graph(), inputs.back(), w, own);
      attrs.set("rounding", std::string("kahan"));
    }
    inputs.push_back(rate_);
    if (rule.reads_step || (coded && rounds_at_random(rule))) inputs.push_back(scalars_.step);
    inputs.insert(inputs.end(), behind_scalars.begin(), behind_scalars.end());
    if (factor.valid()) {
      inputs.push_back(factor);
      attrs.set("scaled", int64_t{1});
    }
    const bool narrow_state = spec_.state_bits == 16 && rule.states.size() > 0;
    user_check(!narrow_state || !rounds || rounding == Rounding::stochastic,
               "optimizer state in 16 bits is rounded at random, and weights in 16 bits beside it "
               "are too; choose --rounding stochastic");
    const bool stochastic = rounding == Rounding::stochastic || narrow_state;
    if (stochastic) {
      inputs.push_back(scalars_.rounding_key);
      attrs.set("rounding", std::string("stochastic"));
      if (b_.graph()[own].is_shard()) attrs.set("shard", int64_t{1});
    }
    if (stochastic || (coded && rounds_at_random(rule))) {
      attrs.set("stream", b_.next_random_stream());
    }
    return b_.op(op, std::move(inputs), std::move(attrs));
  }

  Builder& b_;
  const OptimizerSpec& spec_;
  const OptimizerInputs& scalars_;
  const RanksSpec& ranks_;
  const WeightSettings otherwise_;
  const UpdateRule& rule_;
  std::map<double, ValueId> rates_;        // by factor
  ValueId rate_ = scalars_.learning_rate;  // of the weight at hand
};

// The start of the sum that the gradient of w is added into: the decayed momentum. Where the loss is scaled,
// so is all of the momentum.
ValueId fold_start(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
                   const std::string& name) {
  const bool scaled = spec.scaling.kind == LossScaling::Kind::fixed;
  const double decay = decay_of(b.graph(), w, spec) * (scaled ? spec.scaling.start : 1);
  const ValueId momentum = b.state(b.graph()[w].name + ".momentum", b.type(g));
  const ValueId start =
      b.op("momentum_decay", {momentum, w}, {{"momentum", spec.momentum}, {"weight_decay", decay}});
  b.graph()[start].name = name;
  return start;
}

// Folds gradients into momentum in 8 bits, where it is (the others' places hold nothing): each
// gradient lives until it has been added. `factor` makes them gradients of the loss itself.
void fold_8bit(Builder& b, std::span<const ValueId> weights, std::span<const ValueId> gradients,
               std::span<const BlockState> starts, const OptimizerSpec& spec,
               bool several_microbatches, ValueId factor, OptimizerInputs& scalars) {
  const RanksSpec whole;  // what is folded is
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!starts[i].codes.valid()) continue;
    if (!scalars.rng.valid()) scalars.rng = b.input("rng", {{3}, DType::i64});
    b.set_phase(Phase::per_microbatch);
    const BlockState m = add_folding(b, starts[i], gradients[i], scalars.rng, factor);
    b.set_phase(several_microbatches ? Phase::epilogue : Phase::per_microbatch);
    UpdateNodes(b, spec, scalars, whole).add_folded(weights[i], m);
  }
}

}  // namespace

std::string_view name_of(Rounding rounding) { return kRoundings[static_cast<size_t>(rounding)]; }

Rounding parse_rounding(std::string_view name) {
  for (size_t r = 0; r < kRoundings.size(); ++r) {
    if (kRoundings[r] == name) return static_cast<Rounding>(r);
  }
  user_error("there is no rounding '{}'; known: nearest, stochastic, kahan", name);
}

std::string_view name_of(DecayOn on) { return on == DecayOn::all ? "all" : "matrices"; }

std::string state_name(std::string_view weight, std::string_view state) {
  return fmt::format("{}.{}.{}", kUpdateScope, weight, state);
}

double decay_of(const Graph& graph, ValueId weight, const OptimizerSpec& spec) {
  const Value& value = graph[weight];
  const Shape& shape = value.is_shard() ? value.unsharded : value.type.shape;
  const bool matrix = shape.rank() >= 2 || value.name == kSparseValues;
  return spec.decay_on == DecayOn::all || matrix ? spec.weight_decay : 0;
}

std::vector<ValueId> differentiated(const Graph& graph, std::span<const ValueId> weights) {
  const std::vector<std::vector<NodeId>> readers = readers_of(graph);
  std::vector<ValueId> values;
  for (const ValueId w : weights) {
    const auto& nodes = readers[w.at()];
    const bool copied = nodes.size() == 1 && graph[nodes[0]].op->casts;
    values.push_back(copied ? graph[nodes[0]].outputs[0] : w);
  }
  return values;
}

int64_t shard_granularity(const OptimizerSpec& spec) {
  // Loops over elements take some at a time; those that are left over may round otherwise. Lines of
  // 64 bytes are what they all divide, and what the arena aligns to.
  constexpr int64_t kLine = 16;
  return spec.state_bits == 8 ? kCodeBlock : kLine;
}

OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> of_rank, const OptimizerSpec& spec,
                            bool several_microbatches, ValueId loss_scale, ValueId rng,
                            ValueId loss_factor, const WeightSettings& otherwise,
                            const RanksSpec& ranks) {
  check_optimizer(spec, several_microbatches);
  internal_check(!loss_factor.valid() || !spec.fold, "folded gradients cannot be divided later");
  user_check(otherwise.empty() || !spec.fold,
             "gradients that are folded into the momentum go by one rate and one decay; leave "
             "--fold out, or the groups of parameters");
  // A whole sum over the micro-batches first takes one collective a step. Where there is no such sum, or only
  // a shard of it is kept, the gradient of every micro-batch is summed over the ranks as it is made.
  const bool at_end =
      ranks.several() && several_microbatches && !ranks.sums_at_once() && !spec.fold;
  std::vector<ValueId> gradients(of_rank.begin(), of_rank.end());
  if (!at_end) {
    gradients =
        reduce_gradients(graph, weights, std::move(gradients), ranks, shard_granularity(spec));
  }
  Builder b(graph);
  b.set_backward(true);
  OptimizerInputs scalars;
  scalars.learning_rate = b.input("learning_rate", {{1}, DType::f32});
  if (reads_step(spec)) scalars.step = b.input("step", {{1}, DType::f32});
  scalars.rng = rng;
  if (spec.rounding == Rounding::stochastic || spec.state_bits == 16) {
    scalars.rounding_key = b.input("rounding_key", {{2}, DType::i64});
  }
  const Builder::Scope scope(b, kUpdateScope);

  std::vector<ValueId> trained, complete;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!gradients[i].valid()) continue;
    trained.push_back(weights[i]);
    complete.push_back(gradients[i]);
  }
  std::vector<BlockState> folded(trained.size());  // where the momentum is in 8 bits
  if (spec.fold || several_microbatches) {
    std::vector<Accumulation> sums;
    std::vector<size_t> grown;  // by sum: the weight
    b.set_phase(Phase::prologue);
    for (size_t i = 0; i < trained.size(); ++i) {
      const ValueId w = trained[i];
      const std::string name = graph[w].name + ".gradient";
      if (spec.fold && wants_8bit_state(b, w, spec)) {
        folded[i] = add_fold_start(b, w, spec, name);
        continue;
      }
      const ValueId g = complete[i];
      grown.push_back(i);
      sums.push_back({spec.fold ? fold_start(b, w, g, spec, name) : add_zero(graph, g, name), g});
    }
    const std::vector<ValueId> totals = accumulate_into(graph, sums);
    for (size_t s = 0; s < grown.size(); ++s) complete[grown[s]] = totals[s];
  }
  b.set_phase(several_microbatches ? Phase::epilogue : Phase::per_microbatch);
  for (size_t i = 0; i < trained.size() && at_end; ++i) {
    if (graph[trained[i]].is_shard()) continue;
    complete[i] = reduced(b, complete[i], ranks, shard_granularity(spec));
  }
  const RanksSpec in_parts = ranks.parts() ? ranks : RanksSpec{};
  Unscaling unscaling = add_unscaling(b, loss_scale, complete, spec.scaling, in_parts);
  if (unscaling.overflow.valid()) scalars.loss_scale = loss_scale;
  scalars.overflow = unscaling.overflow;
  if (loss_factor.valid()) {
    unscaling.factor =
        unscaling.factor.valid() ? b.op("mul", {unscaling.factor, loss_factor}) : loss_factor;
  }
  if (spec.clip_norm > 0 && !spec.clip_two_pass) {
    const ValueId factor = add_clip_factor(b, complete, spec.clip_norm, unscaling.factor, in_parts);
    if (unscaling.factor.valid()) {
      unscaling.factor = factor;
    } else {
      complete = scaled_by(b, complete, factor);
    }
  }
  fold_8bit(b, trained, complete, folded, spec, several_microbatches, unscaling.factor, scalars);
  b.set_phase(several_microbatches ? Phase::epilogue : Phase::per_microbatch);
  UpdateNodes updates(b, spec, scalars, ranks, otherwise);
  for (size_t i = 0; i < trained.size(); ++i) {
    if (!folded[i].codes.valid()) updates.add(trained[i], complete[i], unscaling.factor);
  }
  return scalars;
}

}  // namespace thimble
