#include "weights/weights_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/sha256.h"
#include "comm/communicator.h"
#include "transform/adapt.h"
#include "weights/adapter_file.h"
#include "weights/coded_tensors.h"
#include "weights/gather_shards.h"
#include "weights/initialize.h"
#include "weights/onnx_values.h"
#include "weights/outside_tensors.h"
#include "weights/safetensors.h"
#include "weights/safetensors_shards.h"

namespace thimble {
namespace {

constexpr int64_t kChunkElements = 8192;
// Tensors of transformers' GPT-2 that are no weights end so.
constexpr std::string_view kMasks[] = {".attn.bias", ".attn.masked_bias"};

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
                 const OutsideTensor& place) {
  if (has_nf4(file, stored.name)) {
    const std::optional<CodedWeight>& coded = place.tensor.coded;
    user_check(coded && coded->matrix.format == CodedFormat::nf4,
               "'{}': '{}' is in 4 bits (NF4), which {} does not read; choose --frozen nf4",
               file.path(), stored.name, graph.name);
    return check_nf4(file, stored.name, coded->matrix);
  }
  const TensorType wanted = type_of(place, graph);
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
  return with_float_type(from, [&]<class From>(TypeTag<From>) {
    return with_float_type(
        to, [&]<class To>(TypeTag<To>) { return round_to<From, To>(in, out, count); });
  });
}

// A tensor of somebody else's, read piece by piece.
struct TensorSource {
  TensorType type;
  std::string where;  // in messages
  std::function<void(int64_t begin, std::span<std::byte> out)> read;
};

void load_tensor(const TensorSource& source, Program& program, const OutsideTensor& place) {
  const DType from = source.type.dtype, to = type_of(place.tensor, program.graph()).dtype;
  const bool frozen = program.graph()[place.tensor.value].role == Role::frozen;
  std::optional<CodedWriter> writer;
  if (place.tensor.coded) writer.emplace(program, *place.tensor.coded);
  std::vector<std::byte> whole;  // of a tensor that has to be turned
  if (place.turned()) {
    whole.resize(static_cast<size_t>(source.type.bytes().count));
    source.read(0, whole);
    whole = as_ours(place, source.type, whole);
  }
  Piece read, rounded;
  for_each_piece(source.type, [&](int64_t first, int64_t count) {
    std::span<std::byte> bytes = read.bytes(from, count);
    if (place.turned()) {
      bytes = std::span(whole).subspan(static_cast<size_t>(first * size_of(from)), bytes.size());
    } else {
      source.read(first * size_of(from), bytes);
    }
    if (from != to) {
      const std::span<std::byte> result = rounded.bytes(to, count);
      user_check(convert(from, bytes.data(), to, result.data(), count),
                 "{}: tensor '{}' is {} and has numbers beyond {}; choose {}", source.where,
                 place.name, to_string(source.type), name_of(to),
                 frozen ? "--frozen bf16" : "--precision fp32 or bf16, or --master");
      bytes = result;
    }
    if (writer) {
      writer->add({reinterpret_cast<const float*>(bytes.data()), static_cast<size_t>(count)});
    } else {
      write_model_tensor(program, place.tensor, first * size_of(to), bytes);
    }
  });
  if (writer) writer->finish();
}

void load_stored(const SafetensorsFile& file, const StoredTensor& stored, Program& program,
                 const OutsideTensor& place) {
  const auto read = [&](int64_t begin, std::span<std::byte> out) {
    file.read_part(stored, begin, out);
  };
  load_tensor({stored.type, fmt::format("'{}'", file.path()), read}, program, place);
}

void load_found(const SafetensorsFile& file, const StoredTensor& stored, Program& program,
                const OutsideTensor& place) {
  if (has_nf4(file, stored.name)) return load_nf4(file, stored.name, program, *place.tensor.coded);
  load_stored(file, stored, program, place);
}

// Weights that `places` bring are not drawn first.
void draw_others(Program& program, std::span<const OutsideTensor> places, uint64_t seed) {
  const Graph& graph = program.graph();
  std::vector<bool> comes(graph.values.size(), false);
  for (const OutsideTensor& place : places) {
    const Role role = graph[place.tensor.value].role;
    comes[place.tensor.value.at()] = role == Role::weight || role == Role::frozen;
  }
  initialize(program, seed, [&](ValueId value) { return !comes[value.at()]; });
}

// A plan needs no weights.
void check_there(const std::string& file, const Graph& graph) {
  const std::string pickled = file.substr(0, file.rfind('/') + 1) + "pytorch_model.bin";
  user_check(exists(file),
             "there is no '{}', which has the weights of {}: a plan needs none, training begins "
             "with them; {}",
             file, graph.name,
             exists(pickled) ? fmt::format("write '{}' anew with save_pretrained", pickled)
                             : "put the file there");
}

void load_own(Program& program, const Model& model, uint64_t seed) {
  if (!model.first_values.empty()) check_there(model.first_values, program.graph());
  const bool of_onnx = model.first_values.ends_with(".onnx");
  std::vector<OutsideTensor> places;
  if (!model.first_values.empty() && model.foreign && !of_onnx) {
    places = foreign_tensors(program.graph(), *model.foreign, true);
  }
  draw_others(program, places, seed);
  if (of_onnx) {
    load_onnx_values(model.first_values, program, *model.foreign);
  } else if (!model.first_values.empty()) {
    load_weights(model.first_values, program, model.foreign);
  }
}

void load_given(const GiveValues& give, Program& program, const Model& model, uint64_t seed) {
  const Graph& graph = program.graph();
  user_check(model.foreign.has_value(), "{} is not a net from outside, whose values can be given",
             graph.name);
  const std::vector<OutsideTensor> places = foreign_tensors(graph, *model.foreign, true);
  draw_others(program, places, seed);
  std::optional<SafetensorsShards> apart;  // of weights that nobody has a copy of
  if (model.first_values.ends_with(".index.json")) apart.emplace(model.first_values);
  for (const OutsideTensor& place : places) {
    if (apart && apart->is_elsewhere(place.name)) {
      const auto [file, stored] = apart->at(place.name);
      check_shape(*file, *stored, graph, place);
      load_found(*file, *stored, program, place);
      continue;
    }
    TensorType type = type_of(place, graph);
    if (is_floating(type.dtype)) type.dtype = DType::f32;
    const auto read = [&](int64_t begin, std::span<std::byte> out) {
      give(place.name, begin, out);
    };
    load_tensor({type, "first values", read}, program, place);
  }
}

// By whose names the files go.
std::vector<OutsideTensor> places_in(const SafetensorsShards& files, const Graph& graph,
                                     const std::optional<ForeignNames>& foreign) {
  for (const bool with_prefix : {true, false}) {
    if (!foreign) break;
    std::vector<OutsideTensor> places = foreign_tensors(graph, *foreign, with_prefix);
    if (files.find(places.front().name).file != nullptr) return places;
  }
  std::vector<OutsideTensor> places = outside_tensors(graph);
  std::erase_if(places, [&](const OutsideTensor& place) {  // statistics and adapters may be missing
    const bool statistic = graph[place.tensor.value].role == Role::statistic;
    return (statistic || is_adapter(place.name)) && files.find(place.name).file == nullptr;
  });
  return places;
}

bool same_numbers(const SafetensorsShards::Found& one, const SafetensorsShards::Found& other) {
  const StoredTensor &a = *one.stored, &b = *other.stored;
  if (a.type != b.type) return false;
  bool same = true;
  Piece of_a, of_b;
  for_each_piece(a.type, [&](int64_t first, int64_t count) {
    if (!same) return;
    const DType dtype = a.type.dtype;
    one.file->read_part(a, first * size_of(dtype), of_a.bytes(dtype, count));
    other.file->read_part(b, first * size_of(dtype), of_b.bytes(dtype, count));
    same = std::ranges::equal(of_a.bytes(dtype, count), of_b.bytes(dtype, count));
  });
  return same;
}

// In words, how many weights the file has that the model has not: those of more layers, or of a
// projection that is not tied. A copy of one that was loaded is none; numbers that are not floating
// are counters.
std::string left_out(const SafetensorsShards& files, std::span<const OutsideTensor> places) {
  if (files.has_elsewhere()) return "";
  int64_t count = 0;
  std::string first;
  const auto look_at = [&](const SafetensorsFile& file, const StoredTensor& stored) {
    const auto ends = [&](std::string_view end) { return stored.name.ends_with(end); };
    const auto is_copied = [&](const OutsideTensor& place) {
      return same_numbers(files.at(place.name), {&file, &stored});
    };
    if (std::ranges::find(places, stored.name, &OutsideTensor::name) != places.end()) return;
    if (!is_floating(stored.type.dtype) || std::ranges::any_of(kMasks, ends)) return;
    if (std::ranges::any_of(places, is_copied)) return;
    if (count++ == 0) first = stored.name;
  };
  for (const auto& file : files.files()) {
    for (const StoredTensor& stored : file->tensors()) look_at(*file, stored);
  }
  if (count == 0) return "";
  return fmt::format("{} tensor{} that the model has not, '{}'{}, {} left out", count,
                     count == 1 ? "" : "s", first, count == 1 ? "" : " the first",
                     count == 1 ? "was" : "were");
}

}  // namespace

std::map<std::string, std::string> model_metadata(const Graph& graph) {
  return {{"format", "thimble"}, {"model", graph.name}};
}

std::string load_weights(const std::string& path, Program& program,
                         const std::optional<ForeignNames>& foreign) {
  if (is_adapter_folder(path)) {
    load_adapters(path, program, foreign);
    return "";
  }
  const SafetensorsShards files(path);
  const Graph& graph = program.graph();
  const std::vector<OutsideTensor> places = places_in(files, graph, foreign);
  // Every tensor is looked at before any is loaded.
  std::map<std::pair<DType, DType>, int> converted;
  for (const OutsideTensor& place : places) {
    const auto [file, stored] = files.at(place.name);
    check_shape(*file, *stored, graph, place);
    const DType dtype = type_of(place.tensor, graph).dtype;
    const bool coded = place.tensor.coded.has_value();
    if (stored->type.dtype != dtype && !coded) ++converted[{stored->type.dtype, dtype}];
  }
  for (const OutsideTensor& place : places) {
    const auto [file, stored] = files.at(place.name);
    load_found(*file, *stored, program, place);
  }
  std::string note;
  for (const auto& [types, count] : converted) {
    note += fmt::format("{}{} tensor{} of {} became {}", note.empty() ? "" : ", ", count,
                        count == 1 ? "" : "s", name_of(types.first), name_of(types.second));
  }
  const std::string others = left_out(files, places);
  return note.empty() || others.empty() ? note + others : note + "; " + others;
}

void save_weights(const std::string& path, Program& program,
                  const std::optional<ForeignNames>& foreign, bool coded) {
  const Graph& graph = program.graph();
  const bool here = program.ranks() == nullptr || program.ranks()->rank() == 0;
  std::vector<std::byte> whole;  // of the tensor that is being written, where it has to be turned
  std::vector<TensorToWrite> tensors;
  for (const OutsideTensor& place : outside_tensors(graph, foreign)) {
    const std::optional<CodedWeight>& codes = place.tensor.coded;
    if (coded && codes && codes->matrix.format == CodedFormat::nf4 && !place.turned()) {
      if (here) nf4_tensors(program, *codes, place.name, tensors);
      continue;
    }
    const TensorType type = type_of(place, graph);
    const auto fetch = [&program, &whole, place, type](int64_t at, std::span<std::byte> out) {
      if (!place.turned()) return read_model_tensor(program, place.tensor, at, out);
      if (at == 0) {
        whole.resize(static_cast<size_t>(type.bytes().count));
        read_outside_tensor(program, place, whole);
      }
      std::memcpy(out.data(), whole.data() + at, out.size());
    };
    if (here || graph[place.tensor.value].is_shard()) {
      tensors.push_back({place.name, type, {}, fetch});
    }
  }
  if (!here) return stream_safetensors(tensors);
  std::map<std::string, std::string> metadata = model_metadata(graph);
  if (foreign) metadata["format"] = "pt";  // without which transformers does not read it
  write_safetensors(path, tensors, metadata);
}

void set_first_values(Program& program, const Model& model, uint64_t seed, const GiveValues& give) {
  if (give) {
    load_given(give, program, model, seed);
  } else {
    load_own(program, model, seed);
  }
  if (model.first_numbers.empty()) return;
  for (const ModelTensor& tensor : model_tensors(program.graph())) {
    const Value& value = program.graph()[tensor.value];
    const auto given = model.first_numbers.find(value.name);
    if (given == model.first_numbers.end()) continue;
    with_any_type(value.type.dtype, [&]<class T>(TypeTag<T>) {
      std::vector<T> numbers;
      for (const double number : given->second) numbers.push_back(static_cast<T>(number));
      write_model_tensor(program, tensor, 0, std::as_bytes(std::span(numbers)));
    });
  }
}

std::string weights_sha256(Program& program) {
  Sha256 hash;
  Piece piece;
  const Graph& graph = program.graph();
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const Value& value = graph[tensor.value];
    const TensorType type = type_of(tensor, graph);
    const std::string label = fmt::format("{} {}\n", value.name, to_string(type));
    hash.update(std::as_bytes(std::span(label)));
    for_each_piece(type, [&](int64_t first, int64_t count) {
      const std::span<std::byte> bytes = piece.bytes(type.dtype, count);
      read_model_tensor(program, tensor, first * size_of(type.dtype), bytes);
      hash.update(bytes);
    });
  }
  return hash.hex();
}

}  // namespace thimble
