// A net of your own, trained on the built-in digits inside a budget: train_mlp [BUDGET].
#include <fmt/format.h>

#include "data/dataset.h"
#include "model/layers.h"
#include "select/choose.h"
#include "train/trainer.h"

using namespace thimble;

// Residual blocks between two linear layers: layers make weights and nodes, and ops are called by name.
static Model residual_mlp(const ModelOptions& options) {
  Layers net(options);
  Builder& b = net.build();
  ValueId x = b.op("reshape", {net.images()},
                   {{"shape", std::vector<int64_t>{options.batch, options.image.elements()}}});
  x = net.linear("enter", x, 64);
  for (int i = 1; i <= 3; ++i) {
    const Builder::Scope scope(b, fmt::format("block{}", i));
    x = b.op("add", {x, net.linear("mix", net.norm("norm", x, "relu"), 64)});
  }
  return net.classify(net.norm("norm", x, "relu"));
}

int main(int argc, char** argv) {
  const auto digits = open_dataset("digits");
  Recipe recipe;
  recipe.model = {.name = "residual-mlp", .batch = 32, .build = residual_mlp};
  recipe.model.image = digits->info().field("pixels").shape;
  recipe.model.classes = digits->info().field("label").limit;
  recipe.schedule = {.epochs = 15, .rate = 0.05};
  recipe.memory = parse_bytes(argc > 1 ? argv[1] : "512KiB");
  auto planned = plan_training(recipe);  // every byte of a step is known, and none was used
  if (std::holds_alternative<Infeasible>(planned)) return 3;
  auto& step = std::get<PlannedTraining>(planned);
  const Feeder feeder(*digits, {.seed = recipe.seed});
  const TrainResult result = Trainer(step, feeder).run({});
  fmt::print("{} of {} bytes planned, accuracy {:.3f}\n", result.measured_arena.count,
             step.plan().arena.count, result.test["accuracy"]);
  return result.measured_arena == step.plan().arena && result.test["accuracy"] > 0.95 ? 0 : 1;
}
