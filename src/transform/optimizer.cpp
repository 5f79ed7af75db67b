#include "transform/optimizer.h"

#include "base/error.h"
#include "graph/builder.h"
#include "transform/accumulate.h"

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
  b.apply("sgd_update", {w, g, add_momentum(b, w), scalars.learning_rate},
          {{"momentum", spec.momentum},
           {"nesterov", int64_t{spec.nesterov}},
           {"weight_decay", spec.weight_decay}});
}

// What the gradient of w is added into: the momentum, as far as it outlives the step before.
ValueId fold_start(Builder& b, ValueId w, const OptimizerSpec& spec, const std::string& name) {
  const ValueId start =
      b.op("momentum_decay", {add_momentum(b, w), w},
           {{"momentum", spec.momentum}, {"weight_decay", spec.weight_decay}});
  b.graph()[start].name = name;
  return start;
}

void add_adam(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
              const OptimizerInputs& scalars) {
  const std::string name = b.graph()[w].name;
  const ValueId m = b.state(name + ".first_moment", b.type(w));
  const ValueId v = b.state(name + ".second_moment", b.type(w));
  b.apply("adam_update", {w, g, m, v, scalars.learning_rate, scalars.step},
          {{"beta1", spec.beta1},
           {"beta2", spec.beta2},
           {"epsilon", spec.epsilon},
           {"weight_decay", spec.weight_decay},
           {"decoupled", int64_t{spec.kind == Kind::adamw}}});
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
  user_error("there is no optimizer '{}'; known: sgd, nesterov, adam, adamw", name);
}

std::string name_of(const OptimizerSpec& spec) {
  if (spec.kind == Kind::adam) return "adam";
  if (spec.kind == Kind::adamw) return "adamw";
  return spec.nesterov ? "nesterov" : "sgd";
}

void check_fold(const OptimizerSpec& spec) {
  if (!spec.fold) return;
  user_check(spec.kind == Kind::sgd && !spec.nesterov,
             "gradients cannot be folded into the state of {}, whose update needs them apart; choose "
             "--optimizer sgd (heavy ball), or leave --fold out",
             name_of(spec));
  user_check(spec.momentum > 0,
             "without momentum there is nothing to fold gradients into; give --momentum, or leave "
             "--fold out");
}

OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec,
                            bool several_microbatches) {
  check_fold(spec);
  Builder b(graph);
  b.set_backward(true);
  OptimizerInputs scalars;
  scalars.learning_rate = b.input("learning_rate", {{1}, DType::f32});
  if (spec.kind != Kind::sgd) scalars.step = b.input("step", {{1}, DType::f32});
  const Builder::Scope scope(b, "update");

  std::vector<ValueId> trained, complete;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!gradients[i].valid()) continue;
    trained.push_back(weights[i]);
    complete.push_back(gradients[i]);
  }
  if (spec.fold || several_microbatches) {
    std::vector<Growth> sums;
    b.set_phase(Phase::begin);
    for (size_t i = 0; i < trained.size(); ++i) {
      const ValueId w = trained[i];
      const std::string name = graph[w].name + ".gradient";
      sums.push_back({spec.fold ? fold_start(b, w, spec, name) : add_zero(graph, complete[i], name),
                      complete[i]});
    }
    complete = accumulate_into(graph, sums);
  }
  b.set_phase(several_microbatches ? Phase::end : Phase::each);
  for (size_t i = 0; i < trained.size(); ++i) {
    if (spec.kind == Kind::sgd) {
      add_sgd(b, trained[i], complete[i], spec, scalars);
    } else {
      add_adam(b, trained[i], complete[i], spec, scalars);
    }
  }
  return scalars;
}

}  // namespace thimble
