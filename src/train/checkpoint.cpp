#include "train/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "train/model_tensors.h"
#include "train/safetensors.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 2;
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kState = "state.json";

bool is_model_role(Role role) { return role == Role::weight || role == Role::statistic; }

template <class Chosen>
std::vector<ValueId> persistent_values(const Graph& graph, Chosen&& chosen) {
  std::vector<ValueId> values;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (!graph.values[v].producer.valid() && chosen(graph.values[v].role)) {
      values.push_back(make_id<ValueId>(v));
    }
  }
  return values;
}

void write_model(const std::string& path, const Graph& graph,
                 std::span<const TensorToWrite> tensors, Sha256* hash = nullptr) {
  write_safetensors(path, tensors, {{"format", "thimble"}, {"model", graph.name}}, hash);
}

// Returns the sha256 of what was written, as it was before it went to the disk: what the disk makes
// of it shows when the checkpoint is loaded.
std::string write_tensors(const std::string& path, Program& program,
                          const std::vector<ValueId>& values) {
  std::vector<TensorToWrite> tensors;
  for (const ValueId value : values) {
    const Value& v = program.graph()[value];
    tensors.push_back({v.name, v.type, {}, [&program, value](int64_t at, auto out) {
                         program.read(value, at, out);
                       }});
  }
  Sha256 hash;
  write_model(path, program.graph(), tensors, &hash);
  return hash.hex();
}

// The bytes of a tensor through a small buffer: body(offset, chunk), in order.
template <class Body>
void for_each_chunk(const TensorType& type, const Body& body) {
  std::array<std::byte, 65536> buffer;  // whole elements of any type
  const int64_t total = type.bytes().count;
  for (int64_t at = 0; at < total; at += std::ssize(buffer)) {
    body(at, std::span(buffer).first(
                 static_cast<size_t>(std::min<int64_t>(std::ssize(buffer), total - at))));
  }
}

std::string file_sha256(const std::string& path) {
  const ReadFile file(path);
  Sha256 hash;
  std::array<std::byte, 65536> block;
  for (int64_t at = 0; at < file.size();) {
    const int64_t size = std::min<int64_t>(file.size() - at, block.size());
    const std::span<std::byte> part(block.data(), static_cast<size_t>(size));
    file.read_at(at, part);
    hash.update(part);
    at += size;
  }
  return hash.hex();
}

// step-00001200, step-00001200-2, .step-00001200.partial: what this file makes, and nothing else
// that may lie in the same folder.
bool is_checkpoint_name(const std::string& name) {
  static const std::regex ours(R"(step-\d{8,}(-\d+)?|\.step-\d{8,}(-\d+)?\.partial)");
  return std::regex_match(name, ours);
}

void sync_folder(const fs::path& folder) {
  const FileDescriptor file(open(folder.c_str(), O_RDONLY | O_DIRECTORY));
  if (file.get() >= 0) fsync(file.get());
}

// Every tensor must be there with the right type before any is read.
void check_tensors(const SafetensorsFile& file, const Graph& graph,
                   const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    const StoredTensor* stored = file.find(graph[value].name);
    user_check(stored != nullptr, "'{}' has no tensor '{}': it holds another model than {}",
               file.path(), graph[value].name, graph.name);
    user_check(stored->type == graph[value].type,
               "'{}': tensor '{}' is {}, but {} wants {}: it holds another model", file.path(),
               graph[value].name, to_string(stored->type), graph.name,
               to_string(graph[value].type));
  }
}

void read_tensors(const SafetensorsFile& file, Program& program,
                  const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    const Loan loan = program.borrow(value, Loan::Use::write);
    file.read_into(program.graph()[value].name, loan.bytes());
  }
}

nlohmann::json read_state(const fs::path& path) {
  const ReadFile file(path.string());
  user_check(file.size() < (1 << 20), "'{}' is too large to be a checkpoint's state",
             path.string());
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  const nlohmann::json state = nlohmann::json::parse(text, nullptr, false);
  const auto has = [&](const char* key, bool (*is)(const nlohmann::json& value)) {
    return state.contains(key) && is(state[key]);
  };
  const auto object = [](const nlohmann::json& value) { return value.is_object(); };
  user_check(
      !has("format",
           [](const nlohmann::json& value) {
             return value.is_number_integer() && value != kFormat;
           }),
      "'{}' is of another version (format {}, not {}): go on with the program that wrote it, "
      "or start from its weights with --weights",
      path.string(), state.is_object() ? state["format"].dump() : "", kFormat);
  const bool whole = state.is_object() &&
                     has("format", [](const nlohmann::json& value) { return value == kFormat; }) &&
                     has("step",
                         [](const nlohmann::json& value) {
                           return value.is_number_integer() && value.get<int64_t>() >= 0;
                         }) &&
                     has("recipe", object) && has("progress", object) && has("sha256", object);
  user_check(whole, "'{}' is damaged or not a checkpoint of this version", path.string());
  return state;
}

void check_recipe(const std::string& folder, const nlohmann::json& stored,
                  const nlohmann::json& wanted) {
  const auto check = [&](const std::string& key) {
    user_check(stored.contains(key) && stored[key] == wanted[key],
               "the checkpoint in '{}' was made with {} = {}, this run has {}; continue it with "
               "the same settings, or choose another --out",
               folder, key, stored.contains(key) ? stored[key].dump() : "(nothing)",
               wanted[key].dump());
  };
  if (wanted.contains("model")) check("model");  // says most, where it differs
  for (const auto& [key, value] : wanted.items()) check(key);
}

}  // namespace

std::string save_checkpoint(const std::string& out, Program& program, const Position& position) {
  ensure_directory(out);
  const fs::path root(out);
  // The same step saved again gets a folder of its own: the one before stays whole until `latest`
  // has moved on.
  const std::string step = fmt::format("step-{:08}", position.step);
  std::string name = step;
  for (int again = 2; fs::exists(root / name); ++again) name = fmt::format("{}-{}", step, again);
  const fs::path partial = root / ("." + name + ".partial");
  std::error_code ignored;
  // A folder cut off by a crash or a full disk is never `latest`, so it may go.
  fs::remove_all(partial, ignored);
  try {
    ensure_directory(partial.string());
    const Graph& graph = program.graph();
    const std::string weights = write_tensors((partial / kWeights).string(), program,
                                              persistent_values(graph, is_model_role));
    const std::string optimizer =
        write_tensors((partial / kOptimizer).string(), program,
                      persistent_values(graph, [](Role r) { return r == Role::optimizer_state; }));
    const nlohmann::json state = {
        {"format", kFormat},
        {"step", position.step},
        {"recipe", position.recipe},
        {"progress", position.progress.is_object() ? position.progress : nlohmann::json::object()},
        {"sha256", {{kWeights, weights}, {kOptimizer, optimizer}}}};
    write_file((partial / kState).string(), state.dump(2) + "\n");
  } catch (...) {
    fs::remove_all(partial, ignored);
    throw;
  }
  sync_folder(partial);

  const fs::path folder = root / name;
  std::error_code error;
  fs::rename(partial, folder, error);
  user_check(!error, "cannot put the checkpoint at '{}': {}", folder.string(), error.message());
  const fs::path link = root / ".latest.partial";
  fs::remove(link, ignored);
  fs::create_directory_symlink(name, link, error);
  if (!error) fs::rename(link, root / "latest", error);
  user_check(!error, "cannot point '{}' at the new checkpoint: {}", (root / "latest").string(),
             error.message());
  sync_folder(root);

  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const std::string other = entry.path().filename().string();
    if (other != name && is_checkpoint_name(other)) fs::remove_all(entry.path(), ignored);
  }
  return folder.string();
}

std::optional<std::string> latest_checkpoint(const std::string& out) {
  const fs::path link = fs::path(out) / "latest";
  std::error_code error;
  if (!fs::exists(link / kState, error)) return std::nullopt;
  return fs::canonical(link, error).string();
}

nlohmann::json recipe_of_checkpoint(const std::string& folder) {
  return read_state(fs::path(folder) / kState)["recipe"];
}

Position load_checkpoint(const std::string& folder, Program& program,
                         const nlohmann::json& recipe) {
  const fs::path root(folder);
  const nlohmann::json state = read_state(root / kState);
  check_recipe(folder, state["recipe"], recipe);
  const auto check = [&](const char* name, const std::string& found) {
    user_check(state["sha256"].contains(name) && state["sha256"][name] == found,
               "'{}' is damaged: its bytes are not those that were saved", (root / name).string());
  };
  std::future<std::string> of_optimizer =
      std::async(std::launch::async, file_sha256, (root / kOptimizer).string());
  check(kWeights, file_sha256((root / kWeights).string()));
  check(kOptimizer, of_optimizer.get());
  const SafetensorsFile weights((root / kWeights).string());
  const SafetensorsFile optimizer((root / kOptimizer).string());
  const Graph& graph = program.graph();
  const auto model_values = persistent_values(graph, is_model_role);
  const auto state_values =
      persistent_values(graph, [](Role r) { return r == Role::optimizer_state; });
  check_tensors(weights, graph, model_values);
  check_tensors(optimizer, graph, state_values);
  read_tensors(weights, program, model_values);
  read_tensors(optimizer, program, state_values);
  return {state["step"].get<int64_t>(), state["recipe"], state["progress"]};
}

void load_weights(const std::string& path, Program& program) {
  const SafetensorsFile file(path);
  const Graph& graph = program.graph();
  std::vector<ModelTensor> tensors = model_tensors(graph);
  std::erase_if(tensors, [&](const ModelTensor& tensor) {
    const Value& value = graph[tensor.value];
    return value.role == Role::statistic && file.find(value.name) == nullptr;
  });
  std::vector<ValueId> values;
  for (const ModelTensor& tensor : tensors) values.push_back(tensor.value);
  check_tensors(file, graph, values);
  for (const ModelTensor& tensor : tensors) {
    const StoredTensor& stored = file.at(graph[tensor.value].name);
    for_each_chunk(stored.type, [&](int64_t at, std::span<std::byte> chunk) {
      file.read_part(stored, at, chunk);
      write_model_tensor(program, tensor, at, chunk);
    });
  }
}

void save_weights(const std::string& path, Program& program) {
  std::vector<TensorToWrite> tensors;
  for (const ModelTensor& tensor : model_tensors(program.graph())) {
    const Value& value = program.graph()[tensor.value];
    tensors.push_back({value.name, value.type, {}, [&program, tensor](int64_t at, auto out) {
                         read_model_tensor(program, tensor, at, out);
                       }});
  }
  write_model(path, program.graph(), tensors);
}

std::string weights_sha256(Program& program) {
  Sha256 hash;
  const Graph& graph = program.graph();
  for (const ModelTensor& tensor : model_tensors(graph)) {
    const Value& value = graph[tensor.value];
    const std::string label = fmt::format("{} {}\n", value.name, to_string(value.type));
    hash.update(std::as_bytes(std::span(label)));
    for_each_chunk(value.type, [&](int64_t at, std::span<std::byte> chunk) {
      read_model_tensor(program, tensor, at, chunk);
      hash.update(chunk);
    });
  }
  return hash.hex();
}

}  // namespace thimble
