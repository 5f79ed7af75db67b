#include "cli/techniques.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace thimble {
namespace {

// One way to save memory, and how to add it to a recipe.
struct Technique {
  std::string name;
  std::function<void(Recipe&)> apply;
};

// The recipe without any technique: fp32, the whole batch, everything kept.
Recipe plain(Recipe recipe) {
  recipe.model.storage = DType::f32;
  recipe.model.master = false;
  recipe.microbatch = 0;
  recipe.sparsity = {};
  recipe.codec = {};
  recipe.marks = {};
  recipe.planner = "keep_all";
  recipe.memory = {};
  recipe.allow = Tier::approximate;  // the table says which tier each needs
  OptimizerSpec& optimizer = recipe.optimizer;
  optimizer.rounding = Rounding::nearest;
  optimizer.scaling = {};
  optimizer.fold = false;
  optimizer.state_bits = 32;
  optimizer.clip_two_pass = false;
  // Adafactor stands for Adam with less state.
  if (optimizer.kind == OptimizerSpec::Kind::adafactor) optimizer.kind = OptimizerSpec::Kind::adam;
  return recipe;
}

std::string precision_name(const Recipe& recipe) {
  std::string name = recipe.model.storage == DType::f16 ? "fp16" : "bf16";
  if (recipe.model.master) name += ", fp32 master weights";
  if (recipe.optimizer.rounding != Rounding::nearest) {
    name += fmt::format(", {} rounding", name_of(recipe.optimizer.rounding));
  }
  return name;
}

std::string recomputation_name(const Recipe& recipe) {
  return recipe.planner == "optimal" ? "recomputation" : "recomputation, " + recipe.planner;
}

// REQUIRES: `asked` outlives what is returned.
std::vector<Technique> techniques_of(const Recipe& asked) {
  std::vector<Technique> all;
  const OptimizerSpec& optimizer = asked.optimizer;
  if (asked.model.storage != DType::f32) {
    all.push_back({precision_name(asked), [&](Recipe& recipe) {
                     recipe.model.storage = asked.model.storage;
                     recipe.model.master = asked.model.master;
                     recipe.optimizer.rounding = asked.optimizer.rounding;
                     recipe.optimizer.scaling = asked.optimizer.scaling;
                   }});
  }
  if (asked.microbatch > 0) {
    all.push_back({fmt::format("microbatch {}", asked.microbatch),
                   [&](Recipe& recipe) { recipe.microbatch = asked.microbatch; }});
  }
  if (asked.sparsity.enabled()) {
    all.push_back(
        {fmt::format("density {:g}, {}", asked.sparsity.density, name_of(asked.sparsity.method)),
         [&](Recipe& recipe) { recipe.sparsity = asked.sparsity; }});
  }
  if (optimizer.fold) {
    all.push_back(
        {"gradients folded into momentum", [](Recipe& recipe) { recipe.optimizer.fold = true; }});
  }
  if (optimizer.state_bits < 32) {
    all.push_back({fmt::format("{}-bit state", optimizer.state_bits), [&](Recipe& recipe) {
                     recipe.optimizer.state_bits = asked.optimizer.state_bits;
                   }});
  }
  if (optimizer.kind == OptimizerSpec::Kind::adafactor) {
    all.push_back({"adafactor in place of adam",
                   [&](Recipe& recipe) { recipe.optimizer.kind = asked.optimizer.kind; }});
  }
  if (optimizer.clip_two_pass) {
    all.push_back(
        {"clipping in two passes", [](Recipe& recipe) { recipe.optimizer.clip_two_pass = true; }});
  }
  if (asked.codec.codec != nullptr) {
    all.push_back({"codec " + to_string(asked.codec), [&](Recipe& recipe) {
                     recipe.codec = asked.codec;
                     if (!asked.codec.automatic) return;
                     recipe.planner = asked.planner;  // what is encoded is the budget's choice
                     recipe.memory = asked.memory;
                   }});
  }
  const bool marked = !asked.marks.keep.empty() || !asked.marks.recompute.empty();
  if (asked.planner != "keep_all" || asked.memory || marked) {
    all.push_back({recomputation_name(asked), [&](Recipe& recipe) {
                     recipe.planner = asked.planner;
                     recipe.memory = asked.memory;
                     recipe.marks = asked.marks;
                   }});
  }
  return all;
}

TechniqueRow row_of(std::string name, const PlannedStepProgram& planned) {
  const Plan plan = priced_as_a_whole(planned);
  return {.name = std::move(name),
          .terms = terms_of(planned.training->model.graph, plan),
          .arena = plan.arena,
          .flops = plan.flops,
          .tier = name_of(planned.tier)};
}

// Plans within the recipe's budget; where its planner cannot do with that, at its floor.
TechniqueRow plan_row(std::string name, Recipe recipe) {
  try {
    auto planned = plan_training(recipe);
    if (std::holds_alternative<Infeasible>(planned)) {
      recipe.memory = kLeastMemory;
      planned = plan_training(recipe);
    }
    if (recipe.memory == kLeastMemory) {
      name += ", at its floor";
    } else if (recipe.memory) {
      name += " in " + to_string(*recipe.memory);
    }
    return row_of(std::move(name), std::get<PlannedStepProgram>(planned));
  } catch (const UserError& error) {
    return {.name = std::move(name), .refused = error.what()};
  }
}

// For a recipe that asks for nothing: what goes together, and makes the least of a step.
Recipe example_of(const Recipe& recipe, int64_t batch) {
  Recipe example = recipe;
  example.model.storage = DType::bf16;
  example.microbatch = std::max<int64_t>(1, batch / 10);
  example.sparsity.density = 0.3;
  if (example.optimizer.kind == OptimizerSpec::Kind::sgd && example.optimizer.momentum > 0) {
    example.optimizer.nesterov = false;
    example.optimizer.fold = example.optimizer.clip_norm == 0;
  }
  example.planner = "optimal";
  example.memory = kLeastMemory;
  return example;
}

// And what is there besides.
Recipe second_example_of(const Recipe& recipe) {
  Recipe example = plain(recipe);
  example.optimizer.state_bits = 8;
  example.codec = parse_codec_spec("int4");
  return example;
}

}  // namespace

TechniqueReport compare_techniques(const Recipe& recipe, const PlannedStepProgram& planned) {
  const bool asks = !techniques_of(recipe).empty();
  const Recipe together = asks ? recipe : example_of(recipe, planned.microbatches.batch);
  const Recipe besides = second_example_of(recipe);
  const Recipe base = plain(together);
  TechniqueReport report;
  report.baseline = terms_on_paper(make_step_graphs(base).full.model.graph);
  report.rows.push_back(plan_row("fp32, everything kept", base));

  Recipe combined = base;
  for (const Technique& technique : techniques_of(together)) {
    Recipe alone = base;
    technique.apply(alone);
    report.rows.push_back(plan_row(technique.name, alone));
    if (report.rows.back().refused.empty()) technique.apply(combined);
  }
  if (asks) {
    report.rows.push_back(row_of("combined", planned));
    return report;
  }
  for (const Technique& technique : techniques_of(besides)) {
    Recipe alone = base;
    technique.apply(alone);
    report.rows.push_back(plan_row(technique.name, alone));
  }
  report.rows.push_back(plan_row("combined", combined));
  return report;
}

}  // namespace thimble
