#include "train/feed/counted_labels.h"

#include <algorithm>

#include "base/error.h"

namespace thimble {

void CountedLabels::check(Program& program, const Model& model, const TrainingRows& rows) {
  if (rows.first == 0) counting_ = 0, seen_ = 0;
  seen_ += model.rows();
  for (size_t i = 0; i < model.feeds.size(); ++i) {
    const Feed& feed = model.feeds[i];
    if (!feed.ignored) continue;
    const std::span<const int32_t> labels = program.view<int32_t>(feed.value);
    const auto ignored = std::ranges::count(labels, static_cast<int32_t>(*feed.ignored));
    user_check(!feed.must_count || ignored == 0,
               "a '{}' of step {} is {}, which does not count, but in micro-batches the loss of {} "
               "takes all labels to count; leave --microbatch and --fold out, and train on one "
               "rank",
               feed.field, rows.step + 1, *feed.ignored, model.options.name);
    if (ignored < std::ssize(labels)) counting_ |= uint64_t{1} << i;
    user_check(!feed.one_counts || seen_ < rows.batch || ((counting_ >> i) & 1u) != 0,
               "no '{}' of step {} counts: all are {}, so that the loss is a mean over nothing; "
               "leave such batches out",
               feed.field, rows.step + 1, *feed.ignored);
  }
}

}  // namespace thimble
