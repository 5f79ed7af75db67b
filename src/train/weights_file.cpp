#include "train/weights_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/sha256.h"
#include "comm/communicator.h"
#include "train/model_tensors.h"
#include "train/parts.h"
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

// A tensor of the model, and where a file has it.
struct Place {
  ModelTensor tensor;
  std::string name;     // in the file
  bool turned = false;  // with its two axes swapped
};

Shape shape_in_file(const Place& place, const Graph& graph) {
  const Shape shape = whole_type(graph[place.tensor.value]).shape;
  return place.turned ? Shape{shape[1], shape[0]} : shape;
}

void check_shape(const SafetensorsFile& file, const StoredTensor& stored, const Graph& graph,
                 const Place& place) {
  const TensorType wanted = {shape_in_file(place, graph), graph[place.tensor.value].type.dtype};
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

// The bytes of a matrix [rows, columns] as those of [columns, rows].
std::vector<std::byte> turned(std::span<const std::byte> matrix, int64_t rows, int64_t columns,
                              int64_t element) {
  std::vector<std::byte> result(matrix.size());
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(result.data() + (c * rows + r) * element,
                  matrix.data() + (r * columns + c) * element, static_cast<size_t>(element));
    }
  }
  return result;
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
                 const Place& place) {
  const DType from = stored.type.dtype, to = program.graph()[place.tensor.value].type.dtype;
  std::vector<std::byte> whole;  // of a tensor that has to be turned
  if (place.turned) {
    whole.resize(static_cast<size_t>(stored.type.bytes().count));
    file.read_part(stored, 0, whole);
    whole = turned(whole, stored.type.shape[0], stored.type.shape[1], size_of(from));
  }
  Piece read, rounded;
  for_each_piece(stored.type, [&](int64_t first, int64_t count) {
    std::span<std::byte> bytes = read.bytes(from, count);
    if (place.turned) {
      bytes = std::span(whole).subspan(static_cast<size_t>(first * size_of(from)), bytes.size());
    } else {
      file.read_part(stored, first * size_of(from), bytes);
    }
    if (from != to) {
      const std::span<std::byte> result = rounded.bytes(to, count);
      user_check(
          convert(from, bytes.data(), to, result.data(), count),
          "'{}': tensor '{}' is {} and has numbers beyond {}; choose --precision fp32 or bf16, "
          "or --master",
          file.path(), stored.name, to_string(stored.type), name_of(to));
      bytes = result;
    }
    write_model_tensor(program, place.tensor, first * size_of(to), bytes);
  });
}

// The model's tensors under the names of the other program, or without the prefix of these.
std::vector<Place> foreign_places(const Graph& graph, const ForeignNames& foreign,
                                  bool with_prefix) {
  std::map<std::string_view, const ForeignTensor*> by_name;
  for (const ForeignTensor& tensor : foreign.tensors) by_name[tensor.own] = &tensor;
  std::vector<Place> places;
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const auto known = by_name.find(graph[tensor.value].name);
    internal_check(known != by_name.end(), "a weight that the other program's names leave out");
    std::string name = known->second->theirs;
    if (!with_prefix && name.starts_with(foreign.prefix)) name.erase(0, foreign.prefix.size());
    places.push_back({tensor, std::move(name), known->second->turned});
  }
  return places;
}

// Under our own names; statistics that the file does not have are left out.
std::vector<Place> own_places(const Graph& graph, const SafetensorsFile* file = nullptr) {
  std::vector<Place> places;
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const Value& value = graph[tensor.value];
    const bool missing = file != nullptr && file->find(value.name) == nullptr;
    if (value.role == Role::statistic && missing) continue;
    places.push_back({tensor, value.name});
  }
  return places;
}

// By whose names the file goes.
std::vector<Place> places_in(const SafetensorsFile& file, const Graph& graph,
                             const std::optional<ForeignNames>& foreign) {
  for (const bool with_prefix : {true, false}) {
    if (!foreign) break;
    std::vector<Place> places = foreign_places(graph, *foreign, with_prefix);
    if (file.find(places.front().name) != nullptr) return places;
  }
  return own_places(graph, &file);
}

}  // namespace

std::map<std::string, std::string> model_metadata(const Graph& graph) {
  return {{"format", "thimble"}, {"model", graph.name}};
}

std::string load_weights(const std::string& path, Program& program,
                         const std::optional<ForeignNames>& foreign) {
  const SafetensorsFile file(path);
  const Graph& graph = program.graph();
  const std::vector<Place> places = places_in(file, graph, foreign);
  // Every tensor is looked at before any is loaded.
  std::map<std::pair<DType, DType>, int> converted;
  for (const Place& place : places) {
    const StoredTensor& stored = file.at(place.name);
    check_shape(file, stored, graph, place);
    const DType dtype = graph[place.tensor.value].type.dtype;
    if (stored.type.dtype != dtype) ++converted[{stored.type.dtype, dtype}];
  }
  for (const Place& place : places) load_tensor(file, file.at(place.name), program, place);
  std::string note;
  for (const auto& [types, count] : converted) {
    note += fmt::format("{}{} tensor{} of {} became {}", note.empty() ? "" : ", ", count,
                        count == 1 ? "" : "s", name_of(types.first), name_of(types.second));
  }
  return note;
}

void save_weights(const std::string& path, Program& program,
                  const std::optional<ForeignNames>& foreign) {
  const Graph& graph = program.graph();
  const bool here = program.ranks() == nullptr || program.ranks()->rank() == 0;
  std::vector<std::byte> whole;  // of the tensor that is being written, where it has to be turned
  std::vector<TensorToWrite> tensors;
  for (const Place& place : foreign ? foreign_places(graph, *foreign, true) : own_places(graph)) {
    const TensorType type = {shape_in_file(place, graph), graph[place.tensor.value].type.dtype};
    const auto fetch = [&program, &whole, place, type](int64_t at, std::span<std::byte> out) {
      if (!place.turned) return read_model_tensor(program, place.tensor, at, out);
      if (at == 0) {
        whole.resize(static_cast<size_t>(type.bytes().count));
        read_model_tensor(program, place.tensor, 0, whole);
        whole = turned(whole, type.shape[1], type.shape[0], size_of(type.dtype));
      }
      std::memcpy(out.data(), whole.data() + at, out.size());
    };
    if (here || graph[place.tensor.value].is_part()) {
      tensors.push_back({place.name, type, {}, fetch});
    }
  }
  if (!here) return stream_safetensors(tensors);
  std::map<std::string, std::string> metadata = model_metadata(graph);
  if (foreign) metadata["format"] = "pt";  // without which transformers does not read it
  write_safetensors(path, tensors, metadata);
}

std::string weights_sha256(Program& program) {
  Sha256 hash;
  Piece piece;
  const Graph& graph = program.graph();
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const Value& value = graph[tensor.value];
    const TensorType type = whole_type(value);
    const std::string label = fmt::format("{} {}\n", value.name, to_string(type));
    hash.update(std::as_bytes(std::span(label)));
    for_each_piece(type, [&](int64_t first, int64_t count) {
      const std::span<std::byte> bytes = piece.bytes(value.type.dtype, count);
      read_model_tensor(program, tensor, first * size_of(value.type.dtype), bytes);
      hash.update(bytes);
    });
  }
  return hash.hex();
}

}  // namespace thimble
