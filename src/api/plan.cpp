// Plans of the C functions.
#include <algorithm>
#include <chrono>
#include <functional>

#include "api/handles.h"
#include "base/io/json.h"
#include "pipeline/check_plan_file.h"
#include "report/step_report.h"
#include "request/memory_limit.h"
#include "request/resume.h"
#include "select/choose.h"
#include "select/largest_that_fit.h"

namespace thimble::api {
namespace {

// A batch of what the model reads, whatever of it is computed at once.
thimble_tensor field_of(const Model& model, const Feed& feed, int64_t batch) {
  TensorType type = model.graph[feed.value].type;
  std::vector<int64_t> dims(type.shape.dims().begin(), type.shape.dims().end());
  dims[static_cast<size_t>(feed.row_axis)] = batch;
  type.shape = Shape(dims);
  thimble_tensor field = described(feed.field.c_str(), type);
  field.row_axis = feed.row_axis;
  field.limit = feed.limit;
  return field;
}

// As the command line plans it: what `auto` leaves, and, where the budget chooses, by times that are
// measured first where none are known.
PlannedTraining plan_or_throw(Request& request, const std::function<void()>& watch) {
  const auto machine = open_machine(request.recipe, request.explicit_settings);
  resolve_budget(request, machine->backend());
  SearchLimits limits = limits_within(request.search_seconds);
  limits.watch = &watch;
  auto planned = choose_and_plan(request.recipe, request.explicit_settings, machine, limits);
  if (const auto* refusal = std::get_if<Refusal>(&planned)) {
    std::string sentence = refusal->sentence;
    for (const std::string& further : refusal->unlock) {
      sentence += "; to go further down, " + further;
    }
    if (refusal->allow) sentence += "; or give more --memory";
    throw NoFit{sentence, refusal->least.min_bytes};
  }
  say_what_it_took(request, std::get<PlannedTraining>(planned));
  return std::get<PlannedTraining>(std::move(planned));
}

// Asks the caller whether to go on, several times a second.
std::function<void()> asking(thimble_watch watch, void* context) {
  using Clock = std::chrono::steady_clock;
  return [=, last = Clock::time_point()]() mutable {
    constexpr std::chrono::milliseconds kBetween{100};
    if (watch == nullptr || Clock::now() - last < kBetween) return;
    last = Clock::now();
    call("watch", watch, context);
  };
}

// Of the recipe as it is, whatever data it names.
Request request_of(const thimble_recipe& recipe) {
  Settings overrides = recipe.overrides;
  std::string model = recipe.model;
  if (const auto named = overrides.find("model"); named != overrides.end()) {
    model = named->second.get<std::string>();
    overrides.erase(named);
  }
  user_check(!model.empty(), "the recipe names no model; see `thimble list models`");
  return read_request(model, overrides);
}

std::string lines_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += printable(sentence) + "\n";
  return text;
}

}  // namespace

thimble_tensor described(const char* name, const TensorType& type) {
  static_assert(Shape::kMaxRank <= THIMBLE_MOST_DIMS);
  static_assert(
      static_cast<int>(DType::f32) == THIMBLE_F32 && static_cast<int>(DType::f64) == THIMBLE_F64 &&
      static_cast<int>(DType::f16) == THIMBLE_F16 &&
      static_cast<int>(DType::bf16) == THIMBLE_BF16 &&
      static_cast<int>(DType::i32) == THIMBLE_I32 && static_cast<int>(DType::i64) == THIMBLE_I64 &&
      static_cast<int>(DType::u8) == THIMBLE_U8);
  thimble_tensor tensor = {};
  tensor.name = name;
  tensor.dtype = static_cast<thimble_dtype>(type.dtype);
  tensor.rank = type.shape.rank();
  std::ranges::copy(type.shape.dims(), tensor.shape);
  tensor.bytes = type.bytes().count;
  return tensor;
}

}  // namespace thimble::api

using namespace thimble;
using namespace thimble::api;

thimble_code thimble_plan_new(const thimble_recipe* recipe, int32_t with_data,
                              thimble_plan** plan) {
  return thimble_plan_new_watched(recipe, with_data, nullptr, nullptr, plan);
}

thimble_code thimble_plan_new_watched(const thimble_recipe* recipe, int32_t with_data,
                                      thimble_watch watch, void* context, thimble_plan** plan) {
  return guarded([&] {
    given(plan, "plan") = nullptr;
    given(recipe, "recipe");
    Request request = request_of(*recipe);
    auto data = open_data(request, with_data != 0);
    if (!recipe->goes_on_from.empty()) resume_request(request, recipe->goes_on_from);
    PlannedTraining planned = plan_or_throw(request, asking(watch, context));
    const nlohmann::json summary = summary_of(planned);
    auto made = std::make_unique<thimble_plan>();
    made->planned = std::make_shared<Planned>(Planned{std::move(planned), std::move(data)});
    const PlannedTraining& training = made->planned->training;
    made->step_ms = summary["predicted_step_ms"].get<double>();
    made->tier = name_of(training.tier);
    made->json = json_text(summary);
    made->recipe = json_text(to_json(training.recipe));
    made->notes = lines_of(request.notes);
    const Model& read = training.full().model;
    for (const Feed& feed : read.feeds) {
      made->fields.push_back(field_of(read, feed, training.microbatches.batch));
    }
    *plan = made.release();
  });
}

thimble_code thimble_recipe_largest(const thimble_recipe* recipe, const char* what,
                                    thimble_watch watch, void* context, int64_t* value,
                                    int32_t* by_memory) {
  return guarded([&] {
    given(value, "value") = 0;
    Request request = request_of(given(recipe, "recipe"));
    open_data(request, false);
    const auto machine =
        open_machine(request.recipe, request.explicit_settings, ProfileWhen::never);
    resolve_budget(request, machine->backend());
    const std::function<void()> asked = asking(watch, context);
    SearchLimits limits;
    limits.watch = &asked;
    const std::string field = &given(what, "what");
    user_check(request.recipe.memory > kLeastMemory,
               "the largest {} is that of a budget; give memory in bytes", field);
    const bool known = field == "batch" || field == "length";
    user_check(known, "the largest batch or length can be found, not the largest {}", field);
    const auto largest =
        LargestThatFit(request.recipe, request.explicit_settings, machine, limits).find(field);
    user_check(largest.has_value(), "{} has no {} to make larger", request.recipe.model.name,
               field);
    *value = largest->value;
    if (by_memory != nullptr) *by_memory = largest->by_memory ? 1 : 0;
  });
}

void thimble_plan_free(thimble_plan* plan) { delete plan; }

int64_t thimble_plan_bytes(const thimble_plan* plan) {
  return plan == nullptr ? 0 : plan->planned->training.plan().arena.count;
}
double thimble_plan_step_ms(const thimble_plan* plan) {
  return plan == nullptr ? 0 : plan->step_ms;
}
const char* thimble_plan_tier(const thimble_plan* plan) {
  return plan == nullptr ? "" : plan->tier.c_str();
}
const char* thimble_plan_json(const thimble_plan* plan) {
  return plan == nullptr ? "" : plan->json.c_str();
}
const char* thimble_plan_recipe(const thimble_plan* plan) {
  return plan == nullptr ? "" : plan->recipe.c_str();
}
const char* thimble_plan_notes(const thimble_plan* plan) {
  return plan == nullptr ? "" : plan->notes.c_str();
}

thimble_code thimble_plan_save(const thimble_plan* plan, const char* path) {
  return guarded([&] { save_plan(&given(path, "path"), given(plan, "plan").planned->training); });
}

thimble_code thimble_plan_verify(const char* path) {
  return guarded([&] {
    const std::optional<std::string> fault = find_fault(load_plan(&given(path, "path")));
    user_check(!fault, "the plan in '{}' is unsound: {}", path, fault.value_or(""));
  });
}

int32_t thimble_plan_field_count(const thimble_plan* plan) {
  return plan == nullptr ? 0 : static_cast<int32_t>(plan->fields.size());
}

thimble_code thimble_plan_field(const thimble_plan* plan, int32_t index, thimble_tensor* field) {
  return guarded([&] {
    const auto& fields = given(plan, "plan").fields;
    user_check(index >= 0 && index < std::ssize(fields), "there are {} fields, and none is {}",
               fields.size(), index);
    given(field, "field") = fields[static_cast<size_t>(index)];
  });
}
