#include "base/error.h"
#include "execute/costs.h"
#include "pipeline/pipeline.h"

namespace thimble {

std::vector<std::unique_ptr<Variant>> plan_evaluation(const PlannedTraining& training) {
  const Variant& first = training.full();
  const std::string policies[] = {"keep_all"};
  std::vector<std::unique_ptr<Variant>> all;
  for (const auto& trained : training.variants) {
    VariantShape shape = trained->shape;
    if (shape.rows == training.microbatches.rest) continue;  // a smaller last microbatch
    shape.purpose = Purpose::evaluation;
    for (bool fits = false; !fits; shape.rows = (shape.rows + 1) / 2) {
      Model model = build_model(options_for(first.model.options, shape));
      sparsify(model.graph, training.recipe.sparsity);
      auto variant = std::make_unique<Variant>(Variant{.shape = shape, .model = std::move(model)});
      variant->costs = gather_costs(variant->model.graph, *training.backend);
      fits = plan_into(first, *variant, policies, 1);
      internal_check(fits || shape.rows > 1, "evaluation does not fit where training does");
      if (fits) all.push_back(std::move(variant));
    }
  }
  return all;
}

}  // namespace thimble
