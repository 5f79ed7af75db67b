#include "weights/model_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/number/bits.h"
#include "weights/coded_tensors.h"
#include "weights/gather_shards.h"

namespace thimble {
namespace {

// Calls body(place in the range, bytes in the pool) for every nonzero in a range of the dense
// tensor.
template <class Body>
void for_each_nonzero(Program& program, const ModelTensor& tensor, int64_t offset, int64_t bytes,
                      HostMapping::Use use, const Body& body) {
  const int64_t size = size_of(program.graph()[tensor.value].type.dtype);
  const int64_t begin = offset / size, end = (offset + bytes) / size;
  const HostMapping mask_mapping = program.map_to_host(tensor.packed->mask, HostMapping::Use::read);
  const HostMapping first = program.map_to_host(tensor.packed->first, HostMapping::Use::read);
  const uint8_t* mask = mask_mapping.as<uint8_t>().data();
  const int64_t at = first.as<int64_t>()[0] + count_ones(mask, 0, begin);
  const HostMapping part =
      program.map_part_to_host(find_sparse_weights(program.graph()).values, at * size,
                               Bytes(count_ones(mask, begin, end) * size), use);
  std::byte* next = part.bytes().data();
  for_each_one(mask, begin, end, [&](int64_t place) {
    body((place - begin) * size, std::span(next, static_cast<size_t>(size)));
    next += size;
  });
}

}  // namespace

std::vector<ModelTensor> model_tensors(const Graph& graph) {
  const SparseWeights sparse = find_sparse_weights(graph);
  std::vector<std::optional<SparseWeight>> packed(graph.values.size());
  std::vector<bool> storage(graph.values.size(), false);
  for (const SparseWeight& weight : sparse.weights) {
    packed[weight.dense.at()] = weight;
    storage[weight.mask.at()] = storage[weight.first.at()] = true;
  }
  for (const ValueId shared : {sparse.values, sparse.threshold}) {
    if (shared.valid()) storage[shared.at()] = true;
  }
  std::vector<std::optional<CodedWeight>> coded(graph.values.size());
  for (CodedWeight& weight : find_coded_weights(graph)) {
    for (const ValueId scales : std::span(weight.values).subspan(1)) storage[scales.at()] = true;
    coded[weight.values[0].at()] = std::move(weight);
  }
  std::vector<ModelTensor> tensors;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    const bool model =
        value.role == Role::weight || value.role == Role::frozen || value.role == Role::statistic;
    const bool kept = !value.producer.valid() && !storage[v] && model;
    if (kept || packed[v]) tensors.push_back({make_id<ValueId>(v), packed[v], coded[v]});
  }
  return tensors;
}

TensorType type_of(const ModelTensor& tensor, const Graph& graph) {
  if (!tensor.coded) return whole_type(graph[tensor.value]);
  return {{tensor.coded->matrix.rows, tensor.coded->matrix.columns}, DType::f32};
}

void read_model_tensor(Program& program, const ModelTensor& tensor, int64_t offset,
                       std::span<std::byte> out) {
  if (tensor.coded) return read_coded(program, *tensor.coded, offset, out);
  if (!tensor.packed) {
    read_whole(program, tensor.value, offset, out);
    return;
  }
  std::fill(out.begin(), out.end(), std::byte{0});
  for_each_nonzero(program, tensor, offset, std::ssize(out), HostMapping::Use::read,
                   [&](int64_t at, std::span<std::byte> stored) {
                     std::memcpy(out.data() + at, stored.data(), stored.size());
                   });
}

void write_model_tensor(Program& program, const ModelTensor& tensor, int64_t offset,
                        std::span<const std::byte> in) {
  if (tensor.coded) {
    const int64_t elements = tensor.coded->matrix.elements();
    internal_check(offset == 0 && std::ssize(in) == elements * 4, "a part of a coded weight");
    CodedWriter writer(program, *tensor.coded);
    writer.add({reinterpret_cast<const float*>(in.data()), static_cast<size_t>(elements)});
    return writer.finish();
  }
  if (!tensor.packed) {
    write_whole(program, tensor.value, offset, in);
    return;
  }
  for_each_nonzero(program, tensor, offset, std::ssize(in), HostMapping::Use::change,
                   [&](int64_t at, std::span<std::byte> stored) {
                     std::memcpy(stored.data(), in.data() + at, stored.size());
                   });
}

}  // namespace thimble
