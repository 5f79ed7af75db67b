#include "execute/horizontal_fusion.h"

#include "backend/batchable_kernel.h"

namespace thimble {
namespace {

class Grouping {
 public:
  void add(LaunchGroup step) {
    std::erase_if(waiting_, [&](LaunchGroup& group) {
      if (!conflict(group.use, step.use)) return false;
      launches_.push_back(std::move(group));
      return true;
    });
    auto* const batchable = dynamic_cast<BatchableKernel*>(step.kernel);
    if (batchable == nullptr) {
      launches_.push_back(std::move(step));
      return;
    }
    for (LaunchGroup& group : waiting_) {
      const auto& kernel = dynamic_cast<const BatchableKernel&>(*group.kernel);
      if (group.calls.size() >= kernel.most_joined() || !kernel.joins(*batchable)) continue;
      group.calls.push_back(step.calls.front());
      join(group.use, step.use);
      return;
    }
    if (waiting_.size() == kMostWaiting) {
      launches_.push_back(std::move(waiting_.front()));
      waiting_.erase(waiting_.begin());
    }
    waiting_.push_back(std::move(step));
  }

  std::vector<LaunchGroup> finish() {
    for (LaunchGroup& group : waiting_) launches_.push_back(std::move(group));
    return std::move(launches_);
  }

 private:
  static constexpr size_t kMostWaiting = 8;  // groups

  std::vector<LaunchGroup> launches_;
  std::vector<LaunchGroup> waiting_;  // none touches what another writes
};

}  // namespace

void LaunchGroup::run() const {
  if (calls.size() == 1) return kernel->run(*calls.front());
  dynamic_cast<BatchableKernel&>(*kernel).run_all(calls);
}

std::vector<LaunchGroup> group_launches(std::vector<LaunchGroup> singles) {
  Grouping grouping;
  for (LaunchGroup& step : singles) grouping.add(std::move(step));
  return grouping.finish();
}

}  // namespace thimble
