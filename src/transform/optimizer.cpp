#include "transform/optimizer.h"

#include <cmath>

#include "base/error.h"
#include "graph/builder.h"
#include "transform/accumulate.h"
#include "transform/block_state.h"
#include "transform/clip.h"

namespace thimble {
namespace {

using Kind = OptimizerSpec::Kind;

ValueId add_momentum(Builder& b, ValueId w) {
  return b.state(b.graph()[w].name + ".momentum", b.type(w));
}

void add_sgd(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
             const OptimizerInputs& scalars) {
  if (spec.fold) {  // g is the new momentum, weight decay included
    b.apply("sgd_plain_update", {w, g, scalars.learning_rate}, {{"weight_decay", 0.0}});
    return;
  }
  if (spec.momentum == 0) {
    b.apply("sgd_plain_update", {w, g, scalars.learning_rate},
            {{"weight_decay", spec.weight_decay}});
    return;
  }
  const Attrs attrs = {{"momentum", spec.momentum},
                       {"nesterov", int64_t{spec.nesterov}},
                       {"weight_decay", spec.weight_decay}};
  if (wants_8bit_state(b, w, spec)) {
    const BlockState m = add_block_state(b, w, "momentum");
    b.apply("sgd_update_8bit", {w, g, m.codes, m.scales, scalars.learning_rate}, attrs);
  } else {
    b.apply("sgd_update", {w, g, add_momentum(b, w), scalars.learning_rate}, attrs);
  }
}

// What the gradient of w is added into: the momentum, as far as it outlives the step before.
ValueId fold_start(Builder& b, ValueId w, const OptimizerSpec& spec, const std::string& name) {
  const ValueId start = b.op("momentum_decay", {add_momentum(b, w), w},
                             {{"momentum", spec.momentum}, {"weight_decay", spec.weight_decay}});
  b.graph()[start].name = name;
  return start;
}

void add_adam(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
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
    b.apply("adam_update_8bit",
            {w, g, m.codes, m.scales, v.codes, v.scales, scalars.learning_rate, scalars.step},
            rounding);
    return;
  }
  const std::string name = b.graph()[w].name;
  const ValueId m = b.state(name + ".first_moment", b.type(w));
  const ValueId v = b.state(name + ".second_moment", b.type(w));
  b.apply("adam_update", {w, g, m, v, scalars.learning_rate, scalars.step}, attrs);
}

void add_adafactor(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
                   const OptimizerInputs& scalars) {
  const std::string name = b.graph()[w].name;
  const Shape shape = b.shape(w);
  const Attrs attrs = {{"weight_decay", spec.weight_decay}};
  if (shape.rank() < 2) {
    const ValueId v = b.state(name + ".second_moment", {shape, DType::f32});
    b.apply("adafactor_vector_update", {w, g, v, scalars.learning_rate, scalars.step}, attrs);
    return;
  }
  const ValueId rows = b.state(name + ".rows", {{shape[0]}, DType::f32});
  const ValueId columns = b.state(name + ".columns", {{shape.elements() / shape[0]}, DType::f32});
  b.apply("adafactor_update", {w, g, rows, columns, scalars.learning_rate, scalars.step}, attrs);
}

// Folds gradients into momentum in 8 bits, where it is (the others' places hold nothing): each
// gradient lives until it has been added.
void fold_8bit(Builder& b, std::span<const ValueId> weights, std::span<const ValueId> gradients,
               std::span<const BlockState> starts, bool several_microbatches,
               OptimizerInputs& scalars) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!starts[i].codes.valid()) continue;
    if (!scalars.rng.valid()) scalars.rng = b.input("rng", {{3}, DType::i64});
    b.set_phase(Phase::each);
    const BlockState m = add_folding(b, starts[i], gradients[i], scalars.rng);
    b.set_phase(several_microbatches ? Phase::end : Phase::each);
    b.apply("sgd_folded_update_8bit", {weights[i], m.codes, m.scales, scalars.learning_rate});
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
  user_check(spec.momentum > 0,
             "without momentum there is nothing to fold gradients into; give --momentum, or leave "
             "--fold out");
}

void check_optimizer(const OptimizerSpec& spec, bool several_microbatches) {
  check_fold(spec);
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

OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec,
                            bool several_microbatches, ValueId rng) {
  check_optimizer(spec, several_microbatches);
  Builder b(graph);
  b.set_backward(true);
  OptimizerInputs scalars;
  scalars.learning_rate = b.input("learning_rate", {{1}, DType::f32});
  if (spec.kind != Kind::sgd) scalars.step = b.input("step", {{1}, DType::f32});
  scalars.rng = rng;
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
      grown.push_back(i);
      sums.push_back({spec.fold ? fold_start(b, w, spec, name) : add_zero(graph, complete[i], name),
                      complete[i]});
    }
    const std::vector<ValueId> totals = accumulate_into(graph, sums);
    for (size_t s = 0; s < grown.size(); ++s) complete[grown[s]] = totals[s];
  }
  fold_8bit(b, trained, complete, folded, several_microbatches, scalars);
  b.set_phase(several_microbatches ? Phase::end : Phase::each);
  if (spec.clip_norm > 0 && !spec.clip_two_pass) {
    complete = scaled_by(b, complete, add_clip_factor(b, complete, spec.clip_norm));
  }
  for (size_t i = 0; i < trained.size(); ++i) {
    if (folded[i].codes.valid()) continue;
    if (spec.kind == Kind::sgd) {
      add_sgd(b, trained[i], complete[i], spec, scalars);
    } else if (spec.kind == Kind::adafactor) {
      add_adafactor(b, trained[i], complete[i], spec, scalars);
    } else {
      add_adam(b, trained[i], complete[i], spec, scalars);
    }
  }
  return scalars;
}

}  // namespace thimble
