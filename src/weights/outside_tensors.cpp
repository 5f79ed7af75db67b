#include "weights/outside_tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "transform/adapt.h"
#include "weights/gather_shards.h"

namespace thimble {
namespace {

// The bytes of a tensor with its axes in another order: axis k of the result is axis axes[k].
std::vector<std::byte> turned(std::span<const std::byte> tensor, const Shape& shape,
                              std::span<const int64_t> axes, int64_t element) {
  std::array<int64_t, Shape::kMaxRank> step{}, extent{}, at{};  // of the result's axes, in `tensor`
  const size_t rank = axes.size();
  for (size_t k = 0; k < rank; ++k) {
    const int axis = static_cast<int>(axes[k]);
    step[k] = shape.product(axis + 1, shape.rank()) * element;
    extent[k] = shape[axis];
  }
  std::vector<std::byte> result(tensor.size());
  int64_t from = 0;
  for (size_t to = 0; to < result.size(); to += static_cast<size_t>(element)) {
    std::memcpy(result.data() + to, tensor.data() + from, static_cast<size_t>(element));
    for (size_t k = rank; k-- > 0;) {
      from += step[k];
      if (++at[k] < extent[k]) break;
      from -= step[k] * extent[k];
      at[k] = 0;
    }
  }
  return result;
}

std::vector<int64_t> inverse(std::span<const int64_t> axes) {
  std::vector<int64_t> result(axes.size());
  for (size_t k = 0; k < axes.size(); ++k) {
    result[static_cast<size_t>(axes[k])] = static_cast<int64_t>(k);
  }
  return result;
}

// The model's tensors under the names of the other program, or without the prefix of these. To be
// written: without constants, and under all names.
std::vector<OutsideTensor> tensors_of(const Graph& graph, const ForeignNames& foreign,
                                      bool with_prefix, bool to_write) {
  std::map<std::string_view, const ForeignTensor*> by_name;
  for (const ForeignTensor& tensor : foreign.tensors) by_name[tensor.own] = &tensor;
  std::vector<OutsideTensor> places;
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const std::string& own = graph[tensor.value].name;
    const auto known = by_name.find(own);
    if (known == by_name.end() && is_adapter(own)) {  // that nobody else has
      if (to_write) places.push_back({tensor, own});
      continue;
    }
    internal_check(known != by_name.end(), "a weight that the other program's names leave out");
    if (to_write && known->second->constant) continue;
    if (known->second->theirs.empty()) continue;  // computed here
    std::string name = known->second->theirs;
    if (!with_prefix && name.starts_with(foreign.prefix)) name.erase(0, foreign.prefix.size());
    places.push_back({tensor, std::move(name), known->second->axes});
    if (!to_write) continue;
    for (const std::string& other : known->second->also) {
      places.push_back({tensor, other, known->second->axes});
    }
  }
  return places;
}

}  // namespace

std::optional<ForeignNames> names_outside(const Model& model) {
  return model.first_values.empty() ? std::nullopt : model.foreign;
}

TensorType type_of(const OutsideTensor& outside, const Graph& graph) {
  const TensorType own = type_of(outside.tensor, graph);
  std::vector<int64_t> dims(own.shape.dims().begin(), own.shape.dims().end());
  for (size_t k = 0; k < outside.axes.size(); ++k) {
    dims[static_cast<size_t>(outside.axes[k])] = own.shape[static_cast<int>(k)];
  }
  return {Shape(std::span<const int64_t>(dims)), own.dtype};
}

std::vector<OutsideTensor> outside_tensors(const Graph& graph,
                                           const std::optional<ForeignNames>& foreign) {
  if (foreign) return tensors_of(graph, *foreign, true, true);
  std::vector<OutsideTensor> tensors;
  for (const ModelTensor& tensor : model_tensors(graph)) {
    tensors.push_back({tensor, graph[tensor.value].name});
  }
  return tensors;
}

std::vector<OutsideTensor> foreign_tensors(const Graph& graph, const ForeignNames& foreign,
                                           bool with_prefix) {
  return tensors_of(graph, foreign, with_prefix, false);
}

std::vector<std::byte> as_ours(const OutsideTensor& outside, const TensorType& there,
                               std::span<const std::byte> bytes) {
  return turned(bytes, there.shape, outside.axes, size_of(there.dtype));
}

void read_outside_tensor(Program& program, const OutsideTensor& outside, std::span<std::byte> out) {
  read_model_tensor(program, outside.tensor, 0, out);
  if (!outside.turned()) return;
  const TensorType own = whole_type(program.graph()[outside.tensor.value]);
  std::ranges::copy(turned(out, own.shape, inverse(outside.axes), size_of(own.dtype)), out.begin());
}

void write_outside_tensor(Program& program, const OutsideTensor& outside,
                          std::span<const std::byte> in) {
  if (!outside.turned()) return write_model_tensor(program, outside.tensor, 0, in);
  write_model_tensor(program, outside.tensor, 0,
                     as_ours(outside, type_of(outside, program.graph()), in));
}

}  // namespace thimble
