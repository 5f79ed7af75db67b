#include "report/plan_svg.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "select/choose.h"

namespace thimble {
namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(PlanSvg, DrawsEveryStayAndNamesTheBytes) {
  Recipe recipe;
  recipe.model = {.name = "mlp", .batch = 8};
  recipe.device = "null";
  const auto planned = plan_training(recipe);
  const auto& step = std::get<PlannedTraining>(planned);
  const std::string svg = plan_svg(step.graph(), step.plan());
  EXPECT_EQ(svg.find("<svg "), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_NE(svg.find(fmt::format("an arena of {} bytes", step.plan().arena.count)),
            std::string::npos);
  // Three matrices, their momenta and their gradients at least.
  EXPECT_GE(count(svg, "<rect "), 9);
  EXPECT_EQ(count(svg, "width=\"-"), 0);
}

}  // namespace
}  // namespace thimble
