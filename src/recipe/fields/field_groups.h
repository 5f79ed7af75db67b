// The list by its groups, in their order; each a function of this folder.
#pragma once

#include <limits>

#include "recipe/list.h"

namespace thimble {

inline constexpr unsigned kAll = affects::all;
inline constexpr unsigned kNumbers = affects::graph | affects::numerics;
inline constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();
inline constexpr double kMostReal = 1e30;  // well inside what 32 bits hold

void list_memory(Recipe& recipe, Fields& fields);
void list_device(Recipe& recipe, Fields& fields);
void list_ranks(Recipe& recipe, Fields& fields);
void list_model(Recipe& recipe, Fields& fields, const ReadByModel& reads,
                const std::function<void(Fields&)>& list_own);
void list_optimizer(Recipe& recipe, Fields& fields);
void list_precision(Recipe& recipe, Fields& fields);
void list_fine_tuning(Recipe& recipe, Fields& fields);
void list_sparsity(Recipe& recipe, Fields& fields);
void list_data(Recipe& recipe, Fields& fields, const ReadByModel& reads);
void list_schedule(Recipe& recipe, Fields& fields);
void list_tests(Recipe& recipe, Fields& fields);

}  // namespace thimble
