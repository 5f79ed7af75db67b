#include "transform/optimizer.h"

#include "base/error.h"
#include "graph/builder.h"

namespace thimble {
namespace {

using Kind = OptimizerSpec::Kind;

void add_sgd(Builder& b, ValueId w, ValueId g, const OptimizerSpec& spec,
             const OptimizerInputs& scalars) {
  if (spec.momentum == 0) {
    b.apply("sgd_plain_update", {w, g, scalars.learning_rate},
            {{"weight_decay", spec.weight_decay}});
    return;
  }
  const ValueId velocity = b.state(b.graph()[w].name + ".momentum", b.type(w));
  b.apply("sgd_update", {w, g, velocity, scalars.learning_rate},
          {{"momentum", spec.momentum},
           {"nesterov", int64_t{spec.nesterov}},
           {"weight_decay", spec.weight_decay}});
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

OptimizerInputs add_updates(Graph& graph, std::span<const ValueId> weights,
                            std::span<const ValueId> gradients, const OptimizerSpec& spec) {
  Builder b(graph);
  b.set_backward(true);
  OptimizerInputs scalars;
  scalars.learning_rate = b.input("learning_rate", {{1}, DType::f32});
  if (spec.kind != Kind::sgd) scalars.step = b.input("step", {{1}, DType::f32});
  const Builder::Scope scope(b, "update");
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!gradients[i].valid()) continue;
    if (spec.kind == Kind::sgd) {
      add_sgd(b, weights[i], gradients[i], spec, scalars);
    } else {
      add_adam(b, weights[i], gradients[i], spec, scalars);
    }
  }
  return scalars;
}

}  // namespace thimble
