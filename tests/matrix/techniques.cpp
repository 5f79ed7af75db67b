#include "matrix/techniques.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "cli/options.h"
#include "model/layers.h"
#include "support/runs.h"
#include "train/trainer.h"

namespace thimble {
namespace {

constexpr int64_t kSteps = 3;

Model build_block(const ModelOptions& options) {
  constexpr int64_t kWidth = 16;
  Layers net(options);
  Builder& b = net.build();
  const ValueId skip = net.conv("stem", net.images(), kWidth, 3);
  ValueId y = net.conv("conv1", net.norm("bn1", skip, "relu"), kWidth, 3);
  y = net.dropout(net.norm("bn2", y, "relu"));
  y = b.op("add", {net.conv("conv2", y, kWidth, 3), skip});
  y = b.op("global_avg_pool", {y});
  return net.finish(net.linear("classifier", y, options.classes));
}

// For every net. A heavy ball, since most techniques go with it; what is typed later wins.
const Words kUsual = {"--batch=8", "--threads=1", "--costs=modelled", "--optimizer=sgd",
                      "--weight-decay=5e-4"};

struct Asked {
  Recipe recipe;
  std::unique_ptr<Dataset> data;
};

Asked resolve_words(const Net& net, const Words& flags) {
  Words words = net.words;
  words.insert(words.end(), kUsual.begin(), kUsual.end());
  words.insert(words.end(), flags.begin(), flags.end());
  CLI::App app;
  RecipeFlags typed;
  typed.add_model_to(app);
  typed.add_to(app, true);
  app.parse(Words(words.rbegin(), words.rend()));  // CLI11 takes them from the back
  Request request = requested(typed.model, typed.overrides());
  auto data = open_data(request, true);
  Recipe& recipe = request.recipe;
  if (net.build) recipe.model.build = net.build;
  recipe.seed = 3;
  recipe.schedule.steps = kSteps;
  recipe.schedule.rate = 0.02;
  recipe.schedule.kind = RateSchedule::Kind::constant;
  recipe.evaluate = false;
  if (recipe.sparsity.enabled()) recipe.reallocate_every = 1;
  return {std::move(recipe), std::move(data)};
}

Attempt train(const Net& net, const Words& flags) {
  const Asked asked = resolve_words(net, flags);
  const Feeder feeder(*asked.data, feed_options(asked.recipe));
  PlannedTraining planned = std::get<PlannedTraining>(plan_training(asked.recipe));
  Trainer trainer(planned, feeder);
  const TrainResult result = trainer.run({});
  return {.planned = planned.plan().arena,
          .measured = result.measured_arena,
          .losses = result.losses,
          .skipped = result.skipped,
          .state = persistent_bytes(trainer.program())};
}

std::map<std::string, std::string> settings_of(const Technique& technique) {
  std::map<std::string, std::string> settings;
  for (const std::string& word : technique.flags) {
    const size_t equals = word.find('=');
    settings[word.substr(0, equals)] = equals == std::string::npos ? "" : word.substr(equals + 1);
  }
  return settings;
}

std::vector<Technique> with_codecs(std::vector<Technique> all) {
  for (const Codec codec : codecs_by_error()) {
    all.push_back({fmt::format("codec_{}", codec->name), {fmt::format("--codec={}", codec->name)}});
  }
  return all;
}

}  // namespace

const std::vector<Technique>& all_techniques() {
  static const std::vector<Technique> all = with_codecs({
      {"fp16", {"--precision=fp16"}},
      {"fp16_stochastic", {"--precision=fp16", "--rounding=stochastic"}},
      {"fp16_kahan", {"--precision=fp16", "--rounding=kahan"}},
      {"fp16_master", {"--precision=fp16", "--master"}},
      {"bf16", {"--precision=bf16"}},
      {"bf16_stochastic", {"--precision=bf16", "--rounding=stochastic"}},
      {"bf16_kahan", {"--precision=bf16", "--rounding=kahan"}},
      {"bf16_master", {"--precision=bf16", "--master"}},
      {"loss_scale_dynamic", {"--loss-scale=dynamic"}},
      {"loss_scale_fixed", {"--loss-scale=64"}},
      {"loss_scale_none", {"--loss-scale=none"}},
      {"microbatch_even", {"--microbatch=4"}},
      {"microbatch_uneven", {"--microbatch=3"}},
      {"norm_group", {"--norm=group"}},
      {"norm_carried", {"--norm=carried"}},
      {"dropout", {"--dropout=0.2"}},
      {"sparse_dynamic", {"--density=0.3"}},
      {"sparse_static", {"--density=0.3", "--sparsity=static"}},
      {"sparse_magnitude", {"--density=0.3", "--sparsity=magnitude"}},
      {"fold", {"--fold"}},
      {"state_8bit", {"--state-bits=8"}},
      {"nesterov", {"--optimizer=nesterov"}},
      {"adam", {"--optimizer=adam"}},
      {"adafactor", {"--optimizer=adafactor"}},
      {"lion", {"--optimizer=lion"}},
      {"no_momentum", {"--momentum=0"}},
      {"clip_one_pass", {"--clip-norm=0.5"}},
      {"clip_two_pass", {"--clip-norm=0.5", "--clip-two-pass"}},
  });
  return all;
}

const Net& one_block() {
  static const Net net = {"block", {"wrn-10-1", "--data=digits"}, build_block};
  return net;
}

const std::vector<Net>& other_nets() {
  static const std::vector<Net> nets = {
      {"mlp", {"mlp", "--data=digits", "--hidden=128"}},
      {"lstm", {"lstm", "--layers=1", "--hidden=64", "--length=4"}},
      {"lstm_runs", {"lstm", "--layers=1", "--hidden=64", "--length=4", "--steps-at-once=3"}},
      {"lstm_text",
       {"lstm", "--layers=1", "--hidden=64", "--length=6", "--steps-at-once=4", "--reads=tokens",
        "--predicts=targets", "--data=copy"}},
      {"gpt", {"gpt", "--layers=1", "--heads=2", "--width=32", "--length=6", "--data=copy"}},
      {"unet", {"unet", "--data=digits", "--layers=1", "--hidden=8"}},
      {"wrn", {"wrn-10-1", "--data=digits"}},
  };
  return nets;
}

bool can_be_typed_together(const Technique& a, const Technique& b) {
  const auto first = settings_of(a), second = settings_of(b);
  for (const auto& [flag, value] : first) {
    const auto other = second.find(flag);
    if (other != second.end() && other->second != value) return false;
  }
  return true;
}

const std::vector<std::pair<std::string, std::string>>& refused_pairs() {
  static const std::vector<std::pair<std::string, std::string>> pairs = {
      // Weights in 32 bits are not rounded.
      {"fp16_stochastic", "fp16_master"},
      {"fp16_kahan", "fp16_master"},
      {"bf16_stochastic", "bf16_master"},
      {"bf16_kahan", "bf16_master"},
      // fp16 scales the loss dynamically, and a step with folded gradients cannot be skipped.
      {"fold", "fp16"},
      {"fold", "fp16_stochastic"},
      {"fold", "fp16_kahan"},
      {"fold", "fp16_master"},
      {"fold", "loss_scale_dynamic"},
      // Gradients are folded into a heavy ball alone, and before a norm of all is known.
      {"fold", "nesterov"},
      {"fold", "adam"},
      {"fold", "adafactor"},
      {"fold", "lion"},
      {"fold", "no_momentum"},
      {"fold", "clip_one_pass"},
      // Nothing is kept of what rounding leaves over.
      {"adafactor", "fp16_kahan"},
      {"adafactor", "bf16_kahan"},
      // Packed nonzeros have no rows and columns.
      {"adafactor", "sparse_dynamic"},
      {"adafactor", "sparse_static"},
      {"adafactor", "sparse_magnitude"},
      // There are no such layers.
      {"lstm", "dropout"},
      {"lstm_runs", "dropout"},
      {"lstm_text", "dropout"},
      // There is no momentum to leave out.
      {"adam", "no_momentum"},
      {"adafactor", "no_momentum"},
      {"lion", "no_momentum"},
      // State that shares scales does not move; there is none, or too little, to encode.
      {"state_8bit", "sparse_dynamic"},
      {"state_8bit", "sparse_magnitude"},
      {"state_8bit", "adafactor"},
      {"state_8bit", "no_momentum"},
      // The norm is known too late for a second pass over the first microbatch.
      {"clip_two_pass", "microbatch_even"},
      {"clip_two_pass", "microbatch_uneven"},
      // Nets without layers that normalise.
      {"mlp", "norm_group"},
      {"mlp", "norm_carried"},
      {"lstm", "norm_group"},
      {"lstm", "norm_carried"},
      {"lstm_runs", "norm_group"},
      {"lstm_runs", "norm_carried"},
      {"lstm_text", "norm_group"},
      {"lstm_text", "norm_carried"},
      {"gpt", "norm_group"},
      {"gpt", "norm_carried"},
  };
  return pairs;
}

bool are_refused(const std::string& a, const std::string& b) {
  const auto& pairs = refused_pairs();
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) {
    return pair == std::pair(a, b) || pair == std::pair(b, a);
  });
}

Attempt train_with(const Net& net, const Words& flags) {
  try {
    return train(net, flags);
  } catch (const UserError& error) {
    return {.refused = error.what()};
  }
}

}  // namespace thimble
