#include "transform/optimizer.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "graph/builder.h"
#include "transform/accumulate.h"
#include "transform/block_state.h"
#include "transform/clip.h"

namespace thimble {
namespace {

using Kind = OptimizerSpec::Kind;
constexpr std::array<std::string_view, 3> kRoundings = {"nearest", "stochastic", "kahan"};

ValueId add_momentum(Builder& b, ValueId w, ValueId g) {
  return b.state(b.graph()[w].name + ".momentum", b.type(g));
}

// One update node: what the rounding and the scale of the loss add to its inputs and settings.
class UpdateNode {
 public:
  UpdateNode(Builder& b, ValueId w, const OptimizerSpec& spec, const OptimizerInputs& scalars,
             ValueId factor)
      : b_(b), w_(w), scalars_(scalars), factor_(factor) {
    const DType dtype = b.type(w).dtype;
    if (dtype == DType::f16 || dtype == DType::bf16) rounding_ = spec.rounding;
  }

  // op(tensors..., scalars...), or kahan_op(tensors..., compensation, scalars...), which may be
  // missing where check_optimizer refuses that rounding.
  void add(std::string_view op, std::string_view kahan_op, std::vector<ValueId> inputs,
           const std::vector<ValueId>& scalars, Attrs attrs) {
    if (rounding_ == Rounding::kahan) {
      inputs.push_back(b_.state(b_.graph()[w_].name + ".compensation", b_.type(w_)));
    }
    inputs.insert(inputs.end(), scalars.begin(), scalars.end());
    if (factor_.valid()) {
      inputs.push_back(factor_);
      attrs.set("scaled", int64_t{1});
    }
    if (rounding_ == Rounding::stochastic) {
      inputs.push_back(scalars_.rounding_key);
      attrs.set("rounding", std::string("stochastic"));
      attrs.set("stream", b_.next_random_stream());
    }
    b_.apply(rounding_ == Rounding::kahan ? kahan_op : op, std::move(inputs), std::move(attrs));
  }

 private:
  Builder& b_;
  const ValueId w_;
  const OptimizerInputs& scalars_;
  const ValueId factor_;
  Rounding rounding_ = Rounding::nearest;
};

void add_sgd(Builder& b, UpdateNode node, ValueId w, ValueId g, const OptimizerSpec& spec,
             const OptimizerInputs& scalars) {
  if (spec.fold || spec.momentum == 0) {  // folded, g is the new momentum, weight decay included
    const double decay = spec.fold ? 0 : spec.weight_decay;
    node.add("sgd_plain_update", "sgd_plain_kahan_update", {w, g}, {scalars.learning_rate},
             {{"weight_decay", decay}});
    return;
  }
  const Attrs attrs = {{"momentum", spec.momentum},
                       {"nesterov", int64_t{spec.nesterov}},
                       {"weight_decay", spec.weight_decay}};
  if (wants_8bit_state(b, w, spec)) {
    const BlockState m = add_block_state(b, w, "momentum");
    node.add("sgd_update_8bit", {}, {w, g, m.codes, m.scales}, {scalars.learning_rate}, attrs);
    return;
  }
  node.add("sgd_update", "sgd_kahan_update", {w, g, add_momentum(b, w, g)}, {scalars.learning_rate},
           attrs);
}

// What the gradient of w is added into: the momentum, as far as it outlives the step before. Where
// the loss is scaled, so is all of the momentum.
ValueId fold_start(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
                   const std::string& name) {
  const bool scaled = spec.scaling.kind == LossScaling::Kind::fixed;
  const double decay = spec.weight_decay * (scaled ? spec.scaling.start : 1);
  const ValueId start = b.op("momentum_decay", {add_momentum(b, w, g), w},
                             {{"momentum", spec.momentum}, {"weight_decay", decay}});
  b.graph()[start].name = name;
  return start;
}

void add_adam(Builder& b, UpdateNode node, ValueId w, ValueId g, const OptimizerSpec& spec,
              const OptimizerInputs& scalars) {
  const Attrs attrs = {{"beta1", spec.beta1},
                       {"beta2", spec.beta2},
                       {"epsilon", spec.epsilon},
                       {"weight_decay", spec.weight_decay},
                       {"decoupled", int64_t{spec.kind == Kind::adamw}}};
  if (wants_8bit_state(b, w, spec)) {
    const BlockState m = add_block_state(b, w, "first_moment");
    const BlockState v = add_block_state(b, w, "second_moment");
    Attrs rounding = attrs;
    rounding.set("stream", b.next_random_stream());
    node.add("adam_update_8bit", {}, {w, g, m.codes, m.scales, v.codes, v.scales},
             {scalars.learning_rate, scalars.step}, rounding);
    return;
  }
  const std::string name = b.graph()[w].name;
  const TensorType moment = {b.shape(w), DType::f32};
  const ValueId m = b.state(name + ".first_moment", moment);
  const ValueId v = b.state(name + ".second_moment", moment);
  node.add("adam_update", "adam_kahan_update", {w, g, m, v}, {scalars.learning_rate, scalars.step},
           attrs);
}

void add_adafactor(Builder& b, UpdateNode node, ValueId w, ValueId g, const OptimizerSpec& spec,
                   const OptimizerInputs& scalars) {
  const std::string name = b.graph()[w].name;
  const Shape shape = b.shape(w);
  const Attrs attrs = {{"weight_decay", spec.weight_decay}};
  if (shape.rank() < 2) {
    const ValueId v = b.state(name + ".second_moment", {shape, DType::f32});
    node.add("adafactor_vector_update", {}, {w, g, v}, {scalars.learning_rate, scalars.step},
             attrs);
    return;
  }
  const ValueId rows = b.state(name + ".rows", {{shape[0]}, DType::f32});
  const ValueId columns = b.state(name + ".columns", {{shape.elements() / shape[0]}, DType::f32});
  node.add("adafactor_update", {}, {w, g, rows, columns}, {scalars.learning_rate, scalars.step},
           attrs);
}

// Folds gradients into momentum in 8 bits, where it is (the others' places hold nothing): each
// gradient lives until it has been added. `factor` makes them gradients of the loss itself.
void fold_8bit(Builder& b, std::span<const ValueId> weights, std::span<const ValueId> gradients,
               std::span<const BlockState> starts, const OptimizerSpec& spec,
               bool several_microbatches, ValueId factor, OptimizerInputs& scalars) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!starts[i].codes.valid()) continue;
    if (!scalars.rng.valid()) scalars.rng = b.input("rng", {{3}, DType::i64});
    b.set_phase(Phase::each);
    const BlockState m = add_folding(b, starts[i], gradients[i], scalars.rng, factor);
    b.set_phase(several_microbatches ? Phase::end : Phase::each);
    UpdateNode node(b, weights[i], spec, scalars, {});
    node.add("sgd_folded_update_8bit", {}, {weights[i], m.codes, m.scales}, {scalars.learning_rate},
             {});
  }
}

}  // namespace

OptimizerSpec parse_optimizer(std::string_view name) {
  OptimizerSpec spec;
  if (name == "sgd") return spec;
  if (name == "nesterov") {
    spec.nesterov = true;
    return spec;
  }
  if (name == "adam" || name == "adamw") {
    spec.kind = name == "adam" ? Kind::adam : Kind::adamw;
    if (name == "adamw") spec.weight_decay = 0.01;
    return spec;
  }
  if (name == "adafactor") {
    spec.kind = Kind::adafactor;
    return spec;
  }
  user_error("there is no optimizer '{}'; known: sgd, nesterov, adam, adamw, adafactor", name);
}

std::string name_of(const OptimizerSpec& spec) {
  if (spec.kind == Kind::adam) return "adam";
  if (spec.kind == Kind::adamw) return "adamw";
  if (spec.kind == Kind::adafactor) return "adafactor";
  return spec.nesterov ? "nesterov" : "sgd";
}

void check_fold(const OptimizerSpec& spec) {
  if (!spec.fold) return;
  user_check(
      spec.kind == Kind::sgd && !spec.nesterov,
      "gradients cannot be folded into the state of {}, whose update needs them apart; choose "
      "--optimizer sgd (heavy ball), or leave --fold out",
      name_of(spec));
  user_check(
      spec.scaling.kind != LossScaling::Kind::dynamic,
      "a step with folded gradients cannot be skipped, since the momentum has changed already "
      "when they overflow; choose a --loss-scale that is a number, --precision bf16, or leave "
      "--fold out");
  user_check(spec.momentum > 0,
             "without momentum there is nothing to fold gradients into; give --momentum, or leave "
             "--fold out");
}

void check_optimizer(const OptimizerSpec& spec, bool several_microbatches) {
  check_fold(spec);
  user_check(
      spec.rounding != Rounding::kahan || (spec.state_bits != 8 && spec.kind != Kind::adafactor),
      "{} keeps nothing of what rounding leaves over; choose --rounding stochastic",
      spec.state_bits == 8 ? "optimizer state in 8 bits" : "adafactor");
  user_check(spec.state_bits == 32 || spec.state_bits == 8,
             "optimizer state takes 32 bits a number or 8, not {}; choose --state-bits 8 or 32",
             spec.state_bits);
  if (spec.state_bits == 8) {
    user_check(spec.kind != Kind::adafactor,
               "adafactor keeps too little state to be worth encoding; leave --state-bits out, or "
               "choose --optimizer adam");
    user_check(spec.kind != Kind::sgd || spec.momentum > 0,
               "without momentum there is no state to keep in 8 bits; give --momentum, or leave "
               "--state-bits out");
  }
  user_check(std::isfinite(spec.clip_norm) && spec.clip_norm >= 0,
             "gradients are clipped to a norm above 0, not {}", spec.clip_norm);
  if (spec.clip_two_pass) {
    user_check(spec.clip_norm > 0, "--clip-two-pass is a way to clip: give --clip-norm as well");
    user_check(!several_microbatches,
               "the norm of a step in microbatches is known after the last of them, too late for a "
               "second pass over the first; leave --clip-two-pass out, or --microbatch");
  }
  user_check(spec.clip_norm == 0 || spec.clip_two_pass || !spec.fold,
             "gradients that are clipped by their common norm must all be there before the first "
             "goes into the momentum; choose --microbatch without --fold, or --clip-two-pass "
             "without --microbatch");
}

std::string_view name_of(Rounding rounding) { return kRoundings[static_cast<size_t>(rounding)]; }

Rounding parse_rounding(std::string_view name) {
  for (size_t r = 0; r < kRoundings.size(); ++r) {
    if (kRoundings[r] == name) return static_cast<Rounding>(r);
  }
  user_error("there is no rounding '{}'; known: nearest, stochastic, kahan", name);
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

OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec,
                            bool several_microbatches, ValueId loss_scale, ValueId rng) {
  check_optimizer(spec, several_microbatches);
  Builder b(graph);
  b.set_backward(true);
  OptimizerInputs scalars;
  scalars.learning_rate = b.input("learning_rate", {{1}, DType::f32});
  if (spec.kind != Kind::sgd) scalars.step = b.input("step", {{1}, DType::f32});
  scalars.rng = rng;
  if (spec.rounding == Rounding::stochastic) {
    scalars.rounding_key = b.input("rounding_key", {{2}, DType::i64});
  }
  const Builder::Scope scope(b, "update");

  std::vector<ValueId> trained, complete;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!gradients[i].valid()) continue;
    trained.push_back(weights[i]);
    complete.push_back(gradients[i]);
  }
  std::vector<BlockState> folded(trained.size());  // where the momentum is in 8 bits
  if (spec.fold || several_microbatches) {
    std::vector<Growth> sums;
    std::vector<size_t> grown;  // by sum: the weight
    b.set_phase(Phase::begin);
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
  b.set_phase(several_microbatches ? Phase::end : Phase::each);
  Unscaling unscaling = add_unscaling(b, loss_scale, complete, spec.scaling);
  if (unscaling.overflow.valid()) scalars.loss_scale = loss_scale;
  scalars.overflow = unscaling.overflow;
  if (spec.clip_norm > 0 && !spec.clip_two_pass) {
    const ValueId factor = add_clip_factor(b, complete, spec.clip_norm, unscaling.factor);
    if (unscaling.factor.valid()) {
      unscaling.factor = factor;
    } else {
      complete = scaled_by(b, complete, factor);
    }
  }
  fold_8bit(b, trained, complete, folded, spec, several_microbatches, unscaling.factor, scalars);
  b.set_phase(several_microbatches ? Phase::end : Phase::each);
  for (size_t i = 0; i < trained.size(); ++i) {
    if (folded[i].codes.valid()) continue;
    const UpdateNode node(b, trained[i], spec, scalars, unscaling.factor);
    const auto add = spec.kind == Kind::sgd         ? add_sgd
                     : spec.kind == Kind::adafactor ? add_adafactor
                                                    : add_adam;
    add(b, node, trained[i], complete[i], spec, scalars);
  }
  return scalars;
}

}  // namespace thimble
