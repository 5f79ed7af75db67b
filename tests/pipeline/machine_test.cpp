// One machine for a command: what it does for each step, and what it lets go.
#include "pipeline/machine.h"

#include <gtest/gtest.h>

#include "select/choose.h"

namespace thimble {
namespace {

struct Calls {
  int kernels = 0;  // asked for
  size_t kept = 0;  // by the last keep_kernels()
};

// The null device, counted.
class CountedDevice final : public Backend {
 public:
  explicit CountedDevice(Calls& calls) : calls_(calls), real_(make_backend("null", 1)) {}

  std::string_view name() const override { return real_->name(); }
  std::string machine() const override { return real_->machine(); }
  bool runs() const override { return false; }
  Kernel& kernel(const Signature& signature) override {
    ++calls_.kernels;
    return real_->kernel(signature);
  }
  void keep_kernels(const std::unordered_set<Signature, SignatureHash>& used) override {
    calls_.kept = used.size();
  }
  double seconds(const Signature& signature) const override { return real_->seconds(signature); }
  std::unique_ptr<Memory> allocate(Bytes size) override { return real_->allocate(size); }
  void copy_in(std::byte* to, std::span<const std::byte> from) override {
    real_->copy_in(to, from);
  }
  void copy_out(std::span<std::byte> to, const std::byte* from) override {
    real_->copy_out(to, from);
  }
  void synchronise() override {}
  double seconds_for(const std::function<void()>& work) override {
    return real_->seconds_for(work);
  }

 private:
  Calls& calls_;
  const std::unique_ptr<Backend> real_;
};

Recipe small_recipe() {
  Recipe recipe;
  recipe.model = {.name = "mlp:layers=2,hidden=32", .batch = 60};
  recipe.device = "null";
  recipe.costs = "modelled";
  return recipe;
}

size_t signatures_of(const PlannedTraining& planned) {
  std::unordered_set<Signature, SignatureHash> all;
  for (const auto& step : planned.steps) {
    const Graph& graph = step->model.graph;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      all.insert(signature_of(graph, make_id<NodeId>(n)));
    }
  }
  return all.size();
}

TEST(Machine, AStepAsTypedIsPricedOnce) {
  const Recipe recipe = small_recipe();
  Calls of_step, of_plan;
  Machine one(std::make_unique<CountedDevice>(of_step), "");
  build_step(recipe, largest_shape(recipe), one);
  const auto machine =
      std::make_shared<Machine>(std::make_unique<CountedDevice>(of_plan), "", Profiling());
  EXPECT_TRUE(std::holds_alternative<PlannedTraining>(choose_and_plan(recipe, {}, machine)));
  EXPECT_GT(of_step.kernels, 0);
  EXPECT_EQ(of_plan.kernels, of_step.kernels);
}

// Of all candidates of a budget, the kernels of the steps that were chosen stay.
TEST(Machine, KernelsOfCandidatesGo) {
  Recipe recipe = small_recipe();
  recipe.memory = kLeastMemory;
  recipe.fit = true;
  Calls calls;
  const auto machine =
      std::make_shared<Machine>(std::make_unique<CountedDevice>(calls), "", Profiling());
  const auto planned = choose_and_plan(recipe, settings_of(recipe), machine);
  ASSERT_TRUE(std::holds_alternative<PlannedTraining>(planned));
  const auto& training = std::get<PlannedTraining>(planned);
  EXPECT_GT(training.microbatches.count(), 1);
  EXPECT_EQ(calls.kept, signatures_of(training));
  EXPECT_GT(static_cast<size_t>(calls.kernels), 2 * calls.kept);
}

TEST(Machine, KernelsInUseStayWhereTheyAre) {
  Recipe recipe = small_recipe();
  recipe.device = "cpu";
  recipe.on.threads = 1;
  Machine machine(make_backend("cpu", 1), "");
  const Step step = build_step(recipe, largest_shape(recipe), machine);
  recipe.microbatch = 20;
  const Step other = build_step(recipe, largest_shape(recipe), machine);
  const Signature used = signature_of(step.model.graph, make_id<NodeId>(0));
  Kernel* const before = &machine.backend().kernel(used);
  const Step* const kept[] = {&step};
  machine.keep_kernels_of(kept);
  EXPECT_EQ(&machine.backend().kernel(used), before);
}

}  // namespace
}  // namespace thimble
