#include "train/weights_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/sha256.h"
#include "train/model_tensors.h"
#include "train/safetensors.h"

namespace thimble {
namespace {

constexpr int64_t kChunkElements = 8192;

// The elements of a tensor piece by piece: body(first, count), in order.
template <class Body>
void for_each_piece(const TensorType& type, const Body& body) {
  const int64_t total = type.elements();
  for (int64_t at = 0; at < total; at += kChunkElements) {
    body(at, std::min(kChunkElements, total - at));
  }
}

// Room for a piece of any type.
struct Piece {
  alignas(8) std::array<std::byte, kChunkElements * 8> room;

  std::span<std::byte> bytes(DType dtype, int64_t count) {
    return std::span(room).first(static_cast<size_t>(count * size_of(dtype)));
  }
};

void check_shape(const SafetensorsFile& file, const StoredTensor& stored, const Graph& graph,
                 const TensorType& wanted) {
  user_check(stored.type.shape == wanted.shape,
             "'{}': tensor '{}' is {}, but {} wants {}: it holds another model", file.path(),
             stored.name, to_string(stored.type), graph.name, to_string(wanted));
  user_check(
      stored.type.dtype == wanted.dtype ||
          (is_floating(stored.type.dtype) && is_floating(wanted.dtype)),
      "'{}': tensor '{}' is {}, and only F64, F32, F16 and BF16 can be converted to the {} of "
      "{}; store it as one of these",
      file.path(), stored.name, to_string(stored.type), name_of(wanted.dtype), graph.name);
}

// Rounds `count` numbers of type From to type To. False: one of them is finite and its result is not.
template <class From, class To>
bool round_to(const std::byte* from, std::byte* to, int64_t count) {
  bool reached = true;
  for (int64_t i = 0; i < count; ++i) {
    From number;
    std::memcpy(&number, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    const To rounded = static_cast<To>(static_cast<double>(number));
    reached = reached && (std::isfinite(static_cast<double>(rounded)) ||
                          !std::isfinite(static_cast<double>(number)));
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &rounded, sizeof(To));
  }
  return reached;
}

bool convert(DType from, const std::byte* in, DType to, std::byte* out, int64_t count) {
  return with_float_type(from, [&](auto source) {
    return with_float_type(to, [&](auto target) {
      return round_to<typename decltype(source)::type, typename decltype(target)::type>(in, out,
                                                                                        count);
    });
  });
}

void load_tensor(const SafetensorsFile& file, const StoredTensor& stored, Program& program,
                 const ModelTensor& tensor) {
  const DType from = stored.type.dtype, to = program.graph()[tensor.value].type.dtype;
  Piece read, rounded;
  for_each_piece(stored.type, [&](int64_t first, int64_t count) {
    std::span<std::byte> bytes = read.bytes(from, count);
    file.read_part(stored, first * size_of(from), bytes);
    if (from != to) {
      const std::span<std::byte> result = rounded.bytes(to, count);
      user_check(
          convert(from, bytes.data(), to, result.data(), count),
          "'{}': tensor '{}' is {} and has numbers beyond {}; choose --precision fp32 or bf16, "
          "or --master",
          file.path(), stored.name, to_string(stored.type), name_of(to));
      bytes = result;
    }
    write_model_tensor(program, tensor, first * size_of(to), bytes);
  });
}

}  // namespace

std::map<std::string, std::string> model_metadata(const Graph& graph) {
  return {{"format", "thimble"}, {"model", graph.name}};
}

std::string load_weights(const std::string& path, Program& program) {
  const SafetensorsFile file(path);
  const Graph& graph = program.graph();
  std::vector<ModelTensor> tensors = model_tensors(graph);
  std::erase_if(tensors, [&](const ModelTensor& tensor) {
    const Value& value = graph[tensor.value];
    return value.role == Role::statistic && file.find(value.name) == nullptr;
  });
  // Every tensor is looked at before any is loaded.
  std::map<std::pair<DType, DType>, int> converted;
  for (const ModelTensor& tensor : tensors) {
    const Value& value = graph[tensor.value];
    const StoredTensor& stored = file.at(value.name);
    check_shape(file, stored, graph, value.type);
    if (stored.type.dtype != value.type.dtype) ++converted[{stored.type.dtype, value.type.dtype}];
  }
  for (const ModelTensor& tensor : tensors) {
    load_tensor(file, file.at(graph[tensor.value].name), program, tensor);
  }
  std::string note;
  for (const auto& [types, count] : converted) {
    note += fmt::format("{}{} tensor{} of {} became {}", note.empty() ? "" : ", ", count,
                        count == 1 ? "" : "s", name_of(types.first), name_of(types.second));
  }
  return note;
}

void save_weights(const std::string& path, Program& program) {
  std::vector<TensorToWrite> tensors;
  for (const ModelTensor& tensor : model_tensors(program.graph())) {
    const Value& value = program.graph()[tensor.value];
    tensors.push_back({value.name, value.type, {}, [&program, tensor](int64_t at, auto out) {
                         read_model_tensor(program, tensor, at, out);
                       }});
  }
  write_safetensors(path, tensors, model_metadata(program.graph()));
}

std::string weights_sha256(Program& program) {
  Sha256 hash;
  Piece piece;
  const Graph& graph = program.graph();
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const Value& value = graph[tensor.value];
    const std::string label = fmt::format("{} {}\n", value.name, to_string(value.type));
    hash.update(std::as_bytes(std::span(label)));
    for_each_piece(value.type, [&](int64_t first, int64_t count) {
      const std::span<std::byte> bytes = piece.bytes(value.type.dtype, count);
      read_model_tensor(program, tensor, first * size_of(value.type.dtype), bytes);
      hash.update(bytes);
    });
  }
  return hash.hex();
}

}  // namespace thimble
