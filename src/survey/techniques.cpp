#include "survey/techniques.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/attempt.h"
#include "recipe/settings.h"
#include "select/choose.h"

namespace thimble {
namespace {

// One way to save memory: the fields of the list that belong to it, and what its row is called.
struct Technique {
  std::string_view id;  // About::technique
  std::string name;
};

// Sets what belongs to the technique (empty: to any) as it is in the other recipe.
void take(Recipe& recipe, const Recipe& from, std::string_view technique) {
  Recipe other = from;
  const std::vector<Field> theirs = fields_of(other);
  for (const Field& field : fields_of(recipe)) {
    const Field& their = *find_field(theirs, field.name());
    // Of an optimizer, which of the two it is decides.
    const std::string_view of = std::max(field.about().technique, their.about().technique);
    if (!of.empty() && (technique.empty() || of == technique)) field.set(their.get());
  }
}

// The recipe without any technique: fp32, the whole batch, everything kept.
Recipe plain(Recipe recipe) {
  Recipe usual;
  usual.model.name = recipe.model.name;
  usual.model.build = recipe.model.build;
  usual.optimizer = parse_optimizer("adam");  // what factored state stands for with less of it
  take(recipe, usual, "");
  recipe.allow = NumericsTier::approximate;  // the table says which tier each needs
  return recipe;
}

std::string precision_name(const Recipe& recipe) {
  std::string name = recipe.model.storage == DType::f16    ? "fp16"
                     : recipe.model.storage == DType::bf16 ? "bf16"
                                                           : "scaled loss";
  if (recipe.model.master) name += ", fp32 master weights";
  if (recipe.optimizer.rounding != Rounding::nearest) {
    name += fmt::format(", {} rounding", name_of(recipe.optimizer.rounding));
  }
  return name;
}

std::string microbatch_name(const Recipe& asked) {
  return asked.tokens > 0 ? fmt::format("microbatch of {} tokens", asked.microbatch_tokens)
                          : fmt::format("microbatch {}", asked.microbatch);
}

std::string recomputation_name(const Recipe& recipe) {
  return recipe.planner == budget_policy() ? "recomputation" : "recomputation, " + recipe.planner;
}

std::string frozen_name(const Recipe& recipe) {
  const std::optional<CodedFormat>& format = recipe.tuning.frozen;
  return format ? fmt::format("frozen weights in {}", name_of(*format))
                : "frozen weights as stored";
}

// In the order of the table.
std::vector<Technique> techniques_of(const Recipe& asked) {
  const OptimizerSpec& optimizer = asked.optimizer;
  std::vector<Technique> all = {{"precision", precision_name(asked)},
                                {"microbatch", microbatch_name(asked)},
                                {"sparsity", fmt::format("density {:g}, {}", asked.sparsity.density,
                                                         name_of(asked.sparsity.method))},
                                {"frozen", frozen_name(asked)},
                                {"loss rows", "logits of fewer tokens at a time"},
                                {"fold", "gradients folded into momentum"},
                                {"state", fmt::format("{}-bit state", optimizer.state_bits)},
                                {"factored", optimizer.name + " in place of adam"},
                                {"clip", "clipping in two passes"},
                                {"codec", "codec " + to_string(asked.codec)},
                                {"recomputation", recomputation_name(asked)}};
  // Techniques that change something.
  const nlohmann::json base = to_json(plain(asked));
  std::erase_if(all, [&](const Technique& technique) {
    Recipe with = plain(asked);
    take(with, asked, technique.id);
    return to_json(with) == base;
  });
  return all;
}

// The recipe with the technique as it is asked for.
Recipe with_technique(Recipe recipe, const Recipe& asked, const Technique& technique) {
  take(recipe, asked, technique.id);
  if (technique.id == "codec" && asked.codec.automatic) {
    take(recipe, asked, "recomputation");  // what is encoded is the budget's choice
  }
  return recipe;
}

TechniqueRow row_of(std::string name, const PlannedTraining& planned) {
  const Plan plan = priced_as_a_whole(planned);
  return {.name = std::move(name),
          .terms = terms_of(planned.graph(), plan),
          .arena = plan.arena,
          .flops = plan.flops,
          .tier = name_of(planned.tier)};
}

// Plans within the recipe's budget; where its planner cannot do with that, at its floor.
TechniqueRow plan_row(std::string name, Recipe recipe, const std::shared_ptr<Machine>& machine) {
  const auto planned = attempt([&] {
    auto within = plan_training(recipe, machine);
    if (!std::holds_alternative<Infeasible>(within)) return within;
    recipe.memory = kLeastMemory;
    return plan_training(recipe, machine);
  });
  if (const auto* const refused = std::get_if<Refused>(&planned)) {
    return {.name = std::move(name), .refused = refused->why};
  }
  if (recipe.memory == kLeastMemory) {
    name += ", at its floor";
  } else if (recipe.memory) {
    name += " in " + to_string(*recipe.memory);
  }
  return row_of(std::move(name), std::get<PlannedTraining>(std::get<0>(planned)));
}

// For a recipe that asks for nothing: what goes together, and makes the least of a step.
Recipe example_of(const Recipe& recipe, int64_t batch) {
  Recipe example = recipe;
  example.model.storage = DType::bf16;
  if (recipe.tokens > 0) {
    example.microbatch_tokens = std::max<int64_t>(1, recipe.tokens / 10);
  } else {
    example.microbatch = std::max<int64_t>(1, batch / 10);
  }
  if (rule_of(example.optimizer).op.empty()) example.sparsity.density = 0.3;
  if (rule_of(example.optimizer).momentum && example.optimizer.momentum > 0) {
    example.optimizer.name = "sgd";  // which folds
    example.optimizer.fold = example.optimizer.clip_norm == 0;
  }
  example.planner = budget_policy();
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

TechniqueReport compare_techniques(const Recipe& recipe, const PlannedTraining& planned) {
  const bool asks = !techniques_of(recipe).empty();
  const Recipe together = asks ? recipe : example_of(recipe, planned.microbatches.batch);
  const Recipe besides = second_example_of(recipe);
  const Recipe base = plain(together);
  TechniqueReport report;
  report.baseline = terms_on_paper(make_graph(base, largest_shape(base)).model.graph);
  const auto machine = Machine::open(recipe);  // with times as they are known now
  const auto add = [&](std::string name, const Recipe& row) {
    report.rows.push_back(plan_row(std::move(name), row, machine));
    return report.rows.back().refused.empty();
  };
  add("fp32, everything kept", base);
  Recipe combined = base;
  for (const Technique& technique : techniques_of(together)) {
    if (add(technique.name, with_technique(base, together, technique))) {
      combined = with_technique(combined, together, technique);
    }
  }
  if (asks) {
    report.rows.push_back(row_of("combined", planned));
    return report;
  }
  for (const Technique& technique : techniques_of(besides)) {
    add(technique.name, with_technique(base, besides, technique));
  }
  add("combined", combined);
  return report;
}

}  // namespace thimble
