// Weights of a run in and out, by name.
#include <cstring>
#include <optional>

#include "api/handles.h"
#include "transform/optimizer.h"
#include "weights/gather_shards.h"

namespace thimble::api {
namespace {

const OutsideTensor& weight_at(const thimble_run& run, int32_t index) {
  user_check(index >= 0 && index < std::ssize(run.weights),
             "there are {} weights and statistics, and none is {}", run.weights.size(), index);
  return run.weights[static_cast<size_t>(index)];
}

void check_size(const thimble_run& run, const OutsideTensor& tensor, int64_t bytes) {
  const TensorType type = type_of(tensor, run.planned->training.graph());
  user_check(bytes == type.bytes().count, "'{}' is {}, {} bytes, not {}", tensor.name,
             to_string(type), type.bytes().count, bytes);
}

// Optimizer state of a weight, with axes as the weight has them outside. None: nothing of that name, shape and type.
std::optional<OutsideTensor> find_state(const thimble_run& run, const OutsideTensor& weight,
                                        std::string_view name) {
  const Graph& graph = run.planned->training.graph();
  const Value& own = graph[weight.tensor.value];
  const ValueId state = graph.find(state_name(own.name, name));
  if (!state.valid() || graph[state].role != Role::optimizer_state) return std::nullopt;
  if (whole_type(graph[state]) != TensorType{whole_type(own).shape, DType::f32})
    return std::nullopt;
  std::optional<OutsideTensor> found(std::in_place);
  found->tensor.value = state;
  found->name = weight.name;
  found->axes = weight.axes;
  return found;
}

OutsideTensor state_at(const thimble_run& run, int32_t index, const char* name, int64_t bytes) {
  const OutsideTensor& weight = weight_at(run, index);
  std::optional<OutsideTensor> state = find_state(run, weight, &given(name, "state"));
  user_check(state.has_value(),
             "the run keeps no '{}' of '{}' in f32; see which optimizer the recipe has, and leave "
             "--state-bits, --fold and --density out",
             name, weight.name);
  check_size(run, *state, bytes);
  return *std::move(state);
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
    const OutsideTensor& tensor = weight_at(given(run, "run"), index);
    const PlannedTraining& training = run->planned->training;
    const ModelTensor& own = tensor.tensor;
    thimble_tensor& known = given(weight, "weight");
    known = described(tensor.name.c_str(), type_of(tensor, training.graph()));
    known.trained = training.graph()[own.value].role == Role::weight ? 1 : 0;
    if (own.packed || own.coded || tensor.turned() || training.backend().has_device_memory())
      return;
    known.data =
        run->trainer->program().map_to_host(own.value, HostMapping::Use::read).bytes().data();
  });
}

thimble_code thimble_run_map_weight(thimble_run* run, int32_t index, void** data,
                                    int64_t* strides) {
  return guarded([&] {
    const OutsideTensor& tensor = weight_at(given(run, "run"), index);
    const PlannedTraining& training = run->planned->training;
    void*& place = given(data, "data");
    place = nullptr;
    if (tensor.tensor.packed || tensor.tensor.coded || training.backend().has_device_memory())
      return;
    const TensorType own = type_of(tensor.tensor, training.graph());
    int64_t stride = 1;
    for (int axis = own.shape.rank() - 1; axis >= 0; --axis) {
      const auto there = tensor.turned() ? tensor.axes[static_cast<size_t>(axis)] : axis;
      (&given(strides, "strides"))[there] = stride;
      stride *= own.shape[axis];
    }
    place = run->trainer->program()
                .map_to_host(tensor.tensor.value, HostMapping::Use::read)
                .bytes()
                .data();
  });
}

thimble_code thimble_run_find_weight(const thimble_run* run, const char* name, int32_t* index) {
  return guarded([&] {
    const std::string_view wanted = &given(name, "name");
    for (size_t i = 0; i < given(run, "run").weights.size(); ++i) {
      if (run->weights[i].name != wanted) continue;
      given(index, "index") = static_cast<int32_t>(i);
      return;
    }
    std::vector<std::string> names;
    for (const OutsideTensor& tensor : run->weights) names.push_back(tensor.name);
    user_error("the model has no weight '{}'; the nearest is '{}'", wanted,
               nearest_name(wanted, names));
  });
}

thimble_code thimble_run_read_weight(thimble_run* run, int32_t index, void* to, int64_t bytes) {
  return guarded([&] {
    const OutsideTensor& tensor = weight_at(given(run, "run"), index);
    check_size(*run, tensor, bytes);
    std::byte* const begin = static_cast<std::byte*>(to);
    read_outside_tensor(run->trainer->program(), tensor,
                        {&given(begin, "to"), static_cast<size_t>(bytes)});
  });
}

thimble_code thimble_run_write_weight(thimble_run* run, int32_t index, const void* from,
                                      int64_t bytes) {
  return guarded([&] {
    const OutsideTensor& tensor = weight_at(given(run, "run"), index);
    check_size(*run, tensor, bytes);
    // A checkpoint names the file of frozen weights instead of holding them.
    const Graph& graph = run->planned->training.graph();
    user_check(graph[tensor.tensor.value].role != Role::frozen,
               "'{}' is frozen: it keeps the numbers of its file, so give them there", tensor.name);
    const auto* const begin = static_cast<const std::byte*>(from);
    write_outside_tensor(run->trainer->program(), tensor,
                         {&given(begin, "from"), static_cast<size_t>(bytes)});
  });
}

int32_t thimble_run_has_state(const thimble_run* run, int32_t weight, const char* state) {
  if (run == nullptr || state == nullptr || weight < 0 || weight >= std::ssize(run->weights))
    return 0;
  return find_state(*run, run->weights[static_cast<size_t>(weight)], state) ? 1 : 0;
}

thimble_code thimble_run_read_state(thimble_run* run, int32_t weight, const char* state, void* to,
                                    int64_t bytes) {
  return guarded([&] {
    const OutsideTensor tensor = state_at(given(run, "run"), weight, state, bytes);
    std::byte* const begin = static_cast<std::byte*>(to);
    read_outside_tensor(run->trainer->program(), tensor,
                        {&given(begin, "to"), static_cast<size_t>(bytes)});
  });
}

thimble_code thimble_run_write_state(thimble_run* run, int32_t weight, const char* state,
                                     const void* from, int64_t bytes) {
  return guarded([&] {
    const OutsideTensor tensor = state_at(given(run, "run"), weight, state, bytes);
    const auto* const begin = static_cast<const std::byte*>(from);
    write_outside_tensor(run->trainer->program(), tensor,
                         {&given(begin, "from"), static_cast<size_t>(bytes)});
  });
}
