// Trains a net of your own on the built-in digits, inside as many bytes as you allow.
//
//   usage: train_mlp [BUDGET]        for example 300KiB; the default is 512KiB
//
// Exits 0 when the net learnt its task inside the budget, 3 when no plan fits it.
#include <fmt/format.h>

#include <cstdio>

#include "base/error.h"
#include "data/dataset.h"
#include "model/layers.h"
#include "select/choose.h"
#include "train/trainer.h"

namespace {

using namespace thimble;

// The net: a few residual blocks between two linear layers. Layers make weights and the nodes that
// use them; everything else is an op of src/ops, by its name.
Model residual_mlp(const ModelOptions& options) {
  constexpr int64_t kWidth = 64;
  constexpr int kBlocks = 3;
  Layers net(options);
  Builder& b = net.build();
  const std::vector<int64_t> flat = {options.batch, options.image.elements()};
  ValueId x = b.op("reshape", {net.images()}, {{"shape", flat}});  // [N,H,W,C] -> [N,H*W*C]
  x = net.linear("enter", x, kWidth);                              // [N,64]
  for (int i = 1; i <= kBlocks; ++i) {
    const Builder::Scope scope(b, fmt::format("block{}", i));  // weights: "block1.mix.weight"
    const ValueId y = net.linear("mix", net.norm("norm", x, "relu"), kWidth);
    x = b.op("add", {x, y});
  }
  x = net.norm("norm", x, "relu");
  return net.finish(net.linear("classifier", x, options.classes));  // logits -> loss, accuracy
}

int train(Bytes budget) {
  // Or a class of your own, derived from Dataset: it says what its records are and reads one at a time.
  const std::unique_ptr<Dataset> digits = open_dataset("digits");
  Recipe recipe;
  recipe.model = {.name = "residual-mlp",
                  .batch = 32,
                  .image = digits->info().field("pixels").shape,
                  .classes = digits->info().field("label").limit,
                  .build = residual_mlp};
  recipe.optimizer.weight_decay = 5e-4;
  recipe.schedule = {.epochs = 15, .rate = 0.05};
  recipe.evaluate_every = {5};
  recipe.on.threads = 1;  // a net this small is done before a second thread wakes up
  recipe.memory = budget;

  // The whole step, forward to update, gets its addresses here; nothing has run yet.
  auto planned = plan_training(recipe);
  if (const auto* infeasible = std::get_if<Infeasible>(&planned)) {
    fmt::print("does not fit: {}; {} bytes would do\n", infeasible->why,
               infeasible->min_bytes.count);
    return 3;
  }
  auto& step = std::get<PlannedTraining>(planned);
  fmt::print("{} parameters; arena {} bytes of {} allowed\n", parameter_count(step.graph()),
             step.plan().arena.count, budget.count);

  const Feeder feeder(*digits, {.seed = recipe.seed});
  Trainer trainer(step, feeder);
  const TrainResult result = trainer.run([](const Progress& p) {
    if (!p.evaluated) return;
    fmt::print("step {:4}  loss {:.4f}  test accuracy {:.2f}%\n", p.step, p.train.loss,
               100 * p.test["accuracy"]);
  });

  fmt::print("arena measured {} bytes, test accuracy {:.2f}%\n", result.measured_arena.count,
             100 * result.test["accuracy"]);
  return result.measured_arena == step.plan().arena && result.test["accuracy"] >= 0.95 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(parse_bytes(argc > 1 ? argv[1] : "512KiB"));
  } catch (const UserError& error) {
    fmt::print(stderr, "train_mlp: {}\n", error.what());
    return 2;
  }
}
