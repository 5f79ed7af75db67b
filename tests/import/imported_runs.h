// Runs of the small networks in nets/.
#pragma once

#include "../file_support.h"
#include "data/dataset.h"
#include "select/choose.h"
#include "train/trainer.h"
#include "weights/weights_file.h"

namespace thimble {

inline const std::string kNets = THIMBLE_TEST_NETS;

// A file with the settings of tests/torch/make_nets.py, which wrote it.
inline Recipe recipe_of(const std::string& net, const std::string& kind = ".json") {
  Recipe recipe;
  recipe.model.name = kNets + "/" + net + kind;
  recipe.optimizer = parse_optimizer("adamw");
  recipe.optimizer.weight_decay = 0.1;
  recipe.schedule = {.steps = 8, .rate = 1e-3, .kind = RateSchedule::Kind::constant};
  recipe.on.threads = 1;
  recipe.seed = 4;
  recipe.evaluate = false;
  return recipe;
}

struct Ended {
  std::vector<double> losses;
  std::string weights;  // sha256
  Bytes arena, measured;
};

// As one of several ranks, where `ranks` is given.
inline Ended train(const Recipe& recipe, const std::string& export_to = "",
                   TrainOptions options = {}, Communicator* ranks = nullptr) {
  PlannedTraining planned = std::get<PlannedTraining>(plan_training(recipe));
  if (ranks != nullptr) planned.backend().join(*ranks);
  const auto data =
      open_dataset("noise", {.wanted = fields_read(planned.full().model), .seed = recipe.seed});
  const Feeder feeder(*data, {.seed = recipe.seed});
  Trainer trainer(planned, feeder, std::move(options));
  const TrainResult result = trainer.run({});
  if (!export_to.empty()) {
    save_weights(export_to, trainer.program(), planned.full().model.foreign);
  }
  return {result.losses, result.weights_sha256, planned.plan().arena, result.measured_arena};
}

}  // namespace thimble
