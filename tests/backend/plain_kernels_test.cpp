// No step spends its time in plain kernels: those that have no fast one may be 2 % of a step.
#include <gtest/gtest.h>

#include <map>

#include "backend/backend.h"
#include "recipe/settings.h"
#include "select/choose.h"

namespace thimble {
namespace {

// A plain kernel meets an element in some nanoseconds, on one thread, and does about one GFLOP a second.
double plain_seconds(const Signature& s) {
  int64_t elements = 0;
  for (const TensorType& type : s.inputs) elements += type.elements();
  for (const TensorType& type : s.outputs) elements += type.elements();
  return 4e-9 * static_cast<double>(elements) + 1e-9 * s.op->work_of(s).flops;
}

// The time of a fast kernel, at the pace of a thread with AVX-512.
double fast_seconds(const Signature& s) {
  const Work work = s.op->work_of(s);
  return 2e-6 + std::max(work.flops / 200e9, work.bytes / 10e9);
}

class StepOnCpu : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(StepOnCpu, SpendsAtMostTwoPercentInPlainKernels) {
  const auto [model, precision] = GetParam();
  Recipe recipe;
  configure(recipe, {{"model", model},
                     {"precision", precision},
                     {"device", "cpu"},
                     {"threads", "2"},
                     {"costs", "modelled"}});
  const auto planned = plan_training(recipe);
  ASSERT_TRUE(std::holds_alternative<PlannedTraining>(planned));
  const PlannedTraining& training = std::get<PlannedTraining>(planned);
  double all = 0, plain = 0;
  std::map<std::string, double> by_op;
  for (size_t n = 0; n < training.graph().nodes.size(); ++n) {
    const Signature s = signature_of(training.graph(), make_id<NodeId>(n));
    if (s.op->view) continue;
    const bool is_plain = training.backend().kernel(s).name == "reference";
    const double seconds = is_plain ? plain_seconds(s) : fast_seconds(s);
    all += seconds;
    if (!is_plain) continue;
    plain += seconds;
    by_op[std::string(s.op->name)] += seconds;
  }
  std::string which;
  for (const auto& [op, seconds] : by_op) which += fmt::format(" {} {:.2f} ms", op, seconds * 1e3);
  EXPECT_LE(plain, 0.02 * all) << "of " << all * 1e3 << " ms:" << which;
}

INSTANTIATE_TEST_SUITE_P(Zoo, StepOnCpu,
                         testing::Combine(testing::Values("wrn-28-2", "resnet-50", "lenet", "mlp",
                                                          "unet", "gpt2-124m", "dynamicconv"),
                                          testing::Values("fp32", "bf16")));

}  // namespace
}  // namespace thimble
