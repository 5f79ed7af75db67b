// Weights of a run in and out, by name.
#include <cstring>

#include "api/handles.h"

namespace thimble::api {
namespace {

const ModelTensor& weight_at(const thimble_run& run, int32_t index) {
  user_check(index >= 0 && index < std::ssize(run.weights),
             "there are {} weights and statistics, and none is {}", run.weights.size(), index);
  return run.weights[static_cast<size_t>(index)];
}

const Value& value_of(const thimble_run& run, const ModelTensor& tensor) {
  return run.planned->training.graph()[tensor.value];
}

void check_size(const Value& value, int64_t bytes) {
  user_check(bytes == value.type.bytes().count, "'{}' is {}, {} bytes, not {}", value.name,
             to_string(value.type), value.type.bytes().count, bytes);
}

}  // namespace
}  // namespace thimble::api

using namespace thimble;
using namespace thimble::api;

int32_t thimble_run_weight_count(const thimble_run* run) {
  return run == nullptr ? 0 : static_cast<int32_t>(run->weights.size());
}

thimble_code thimble_run_weight(thimble_run* run, int32_t index, thimble_tensor* weight) {
  return guarded([&] {
    const ModelTensor& tensor = weight_at(given(run, "run"), index);
    const Value& value = value_of(*run, tensor);
    thimble_tensor& known = given(weight, "weight");
    known = described(value.name.c_str(), value.type);
    known.trained = value.role == Role::weight ? 1 : 0;
    if (tensor.packed || run->planned->training.backend->remote()) return;
    known.data = run->trainer->program().borrow(tensor.value, Loan::Use::read).bytes().data();
  });
}

thimble_code thimble_run_find_weight(const thimble_run* run, const char* name, int32_t* index) {
  return guarded([&] {
    const std::string_view wanted = &given(name, "name");
    for (size_t i = 0; i < given(run, "run").weights.size(); ++i) {
      if (value_of(*run, run->weights[i]).name != wanted) continue;
      given(index, "index") = static_cast<int32_t>(i);
      return;
    }
    std::vector<std::string> names;
    for (const ModelTensor& tensor : run->weights) names.push_back(value_of(*run, tensor).name);
    user_error("the model has no weight '{}'; the nearest is '{}'", wanted,
               nearest_name(wanted, names));
  });
}

thimble_code thimble_run_read_weight(thimble_run* run, int32_t index, void* to, int64_t bytes) {
  return guarded([&] {
    const ModelTensor& tensor = weight_at(given(run, "run"), index);
    check_size(value_of(*run, tensor), bytes);
    std::byte* const begin = static_cast<std::byte*>(to);
    read_model_tensor(run->trainer->program(), tensor, 0,
                      {&given(begin, "to"), static_cast<size_t>(bytes)});
  });
}

thimble_code thimble_run_write_weight(thimble_run* run, int32_t index, const void* from,
                                      int64_t bytes) {
  return guarded([&] {
    const ModelTensor& tensor = weight_at(given(run, "run"), index);
    check_size(value_of(*run, tensor), bytes);
    const auto* const begin = static_cast<const std::byte*>(from);
    write_model_tensor(run->trainer->program(), tensor, 0,
                       {&given(begin, "from"), static_cast<size_t>(bytes)});
  });
}
