#include "weights/checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <set>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/file_digest.h"
#include "base/io/json.h"
#include "base/io/json_object.h"
#include "base/io/sha256.h"
#include "comm/small_collectives.h"
#include "data/fingerprint.h"
#include "weights/gather_shards.h"
#include "weights/safetensors.h"
#include "weights/weights_file.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

// 3: with the whole recipe, by the names of its fields.
constexpr int kOldestFormat = 3, kFormat = 3;
constexpr const char* kWeights = "weights.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kState = "state.json";

bool is_model_role(Role role) { return role == Role::weight || role == Role::statistic; }
bool is_state_role(Role role) { return role == Role::optimizer_state; }

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

// Whether this rank is the one that writes.
bool writes(const Program& program) {
  return program.ranks() == nullptr || program.ranks()->rank() == 0;
}

// Returns the sha256 of what was written, as it was before it went to the disk: what the disk makes
// of it shows when the checkpoint is loaded. Ranks that do not write take part in what is read of parts.
std::string write_tensors(const std::string& path, Program& program,
                          const std::vector<ValueId>& values) {
  std::vector<TensorToWrite> tensors;
  const bool here = writes(program);
  for (const ValueId value : values) {
    const Value& v = program.graph()[value];
    if (!here && !v.is_shard()) continue;
    tensors.push_back({v.name, whole_type(v), {}, [&program, value](int64_t at, auto out) {
                         read_whole(program, value, at, out);
                       }});
  }
  if (!here) {
    stream_safetensors(tensors);
    return "";
  }
  Sha256 hash;
  write_safetensors(path, tensors, model_metadata(program.graph()), &hash);
  return hash.hex();
}

// step-00001200, step-00001200-2, .step-00001200.partial: what this file makes, and nothing else
// that may lie in the same folder.
bool is_checkpoint_name(std::string_view name) {
  constexpr std::string_view kStep = "step-", kPartial = ".partial", kDigits = "0123456789";
  if (name.starts_with('.')) {
    if (!name.ends_with(kPartial)) return false;
    name = name.substr(1, name.size() - std::min(name.size(), 1 + kPartial.size()));
  }
  if (!name.starts_with(kStep)) return false;
  name.remove_prefix(kStep.size());
  const size_t digits = std::min(name.find_first_not_of(kDigits), name.size());
  const std::string_view again = name.substr(digits);  // "-2"
  return digits >= 8 && digits <= 18 &&
         (again.empty() || (again.size() > 1 && again[0] == '-' &&
                            again.find_first_not_of(kDigits, 1) == again.npos));
}

// The step of a whole checkpoint's name; -1: of a part of one.
int64_t step_in(const std::string& name) {
  return name.starts_with("step-") ? std::stoll(name.substr(5)) : -1;
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
    const TensorType wanted = whole_type(graph[value]);
    user_check(stored->type == wanted,
               "'{}': tensor '{}' is {}, but {} wants {}: it holds another model", file.path(),
               graph[value].name, to_string(stored->type), graph.name, to_string(wanted));
  }
}

void read_tensors(const SafetensorsFile& file, Program& program,
                  const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    const Value& kept = program.graph()[value];
    const StoredTensor& stored = file.at(kept.name);
    const int64_t begin = first_element(program, value) * size_of(kept.type.dtype);
    const int64_t held =
        std::clamp<int64_t>(stored.type.bytes().count - begin, 0, kept.type.bytes().count);
    const HostMapping mapping = program.map_to_host(value, HostMapping::Use::write);
    const std::span<std::byte> bytes = mapping.bytes();
    const auto own = bytes.first(static_cast<size_t>(held));
    if (!own.empty()) file.read_part(stored, begin, own);
    std::ranges::fill(bytes.subspan(own.size()), std::byte{0});
  }
}

nlohmann::json read_state(const fs::path& path) {
  nlohmann::json found = read_json(path.string(), "a checkpoint's state", Bytes(1 << 20));
  const nlohmann::json& state = found;
  const auto has = [&](const char* key, bool (*is)(const nlohmann::json& value)) {
    return state.contains(key) && is(state[key]);
  };
  const auto object = [](const nlohmann::json& value) { return value.is_object(); };
  const auto whole_number = [](const nlohmann::json& value) { return value.is_number_integer(); };
  if (state.is_object() && has("format", whole_number)) {
    user_check(
        state["format"] >= kOldestFormat && state["format"] <= kFormat,
        "'{}' has the format {}, and this version reads {} to {}; go on with the version that "
        "wrote it",
        path.string(), json_text(state["format"]), kOldestFormat, kFormat);
    static const std::vector<std::string> kKeys = {"format", "step", "recipe", "progress",
                                                   "data",   "base", "sha256"};
    const std::string what = fmt::format("'{}'", path.string());
    JsonObject(state, what, kKeys);  // and no others
  }
  const bool whole = state.is_object() && has("format", whole_number) &&
                     has("step",
                         [](const nlohmann::json& value) {
                           return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
                         }) &&
                     has("recipe", object) && has("progress", object) && has("sha256", object) &&
                     (!state.contains("data") || state["data"].is_object());
  user_check(whole, "'{}' is damaged or not a checkpoint of this version; get a fresh copy of it",
             path.string());
  // `latest` is a link to a folder that has the step in its name.
  const std::string folder = path.parent_path().filename().string();
  user_check(
      !is_checkpoint_name(folder) || step_in(folder) == state["step"].get<int64_t>(),
      "'{}' says step {}, and its folder is '{}': it is damaged or not of this folder; get a "
      "fresh copy of it",
      path.string(), state["step"].get<int64_t>(), folder);
  return found;
}

void check_recipe(const std::string& folder, const nlohmann::json& stored,
                  const nlohmann::json& wanted) {
  const auto check = [&](const std::string& key) {
    // The version that saved it need not know settings that were not chosen.
    const bool same = stored.contains(key) ? stored[key] == wanted[key] : wanted[key].is_null();
    user_check(same,
               "the checkpoint in '{}' was made with {} = {}, this run has {}; continue it with "
               "the same settings, or choose another --out",
               folder, key, stored.contains(key) ? json_text(stored[key]) : "(nothing)",
               json_text(wanted[key]));
  };
  if (wanted.contains("model")) check("model");  // says most, where it differs
  for (const auto& [key, value] : wanted.items()) check(key);
}

// All checkpoints but the latest, `kept`, and the ones before it that make `keep` in all, and what was
// cut off while it was written. Only folders that bear our names are touched.
void remove_others(const fs::path& root, const std::string& kept, int64_t keep) {
  std::vector<std::string> others;
  std::error_code ignored;
  for (fs::directory_iterator entry(root, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string other = entry->path().filename().string();
    std::error_code unknown;
    if (other == kept || !is_checkpoint_name(other) || entry->is_symlink(unknown) ||
        !entry->is_directory(unknown)) {
      continue;
    }
    others.push_back(other);
  }
  std::ranges::sort(others, std::greater(),
                    [](const std::string& name) { return std::pair(step_in(name), name); });
  for (const std::string& other : others) {
    const int64_t step = step_in(other);
    // One that is of the latest step, or behind it, is of a run that went on from before it.
    const bool stays = step >= 0 && step < step_in(kept) && keep > 1;
    if (stays) --keep;
    std::error_code unknown;
    if (!stays) fs::remove_all(root / other, unknown);
  }
}

}  // namespace

std::string save_checkpoint(const std::string& out, Program& program, const Position& position,
                            int64_t keep) {
  if (!writes(program)) {
    for (const auto& chosen : {is_model_role, is_state_role}) {
      write_tensors("", program, persistent_values(program.graph(), chosen));
    }
    return text_of_first(*program.ranks(), "");
  }
  ensure_directory(out);
  const fs::path root(out);
  // The same step saved again gets a folder of its own: the one before stays whole until `latest`
  // has moved on.
  const std::string step = fmt::format("step-{:08}", position.step);
  std::string name = step;
  for (int again = 2; exists((root / name).string()); ++again)
    name = fmt::format("{}-{}", step, again);
  const fs::path partial = root / ("." + name + ".partial");
  std::error_code ignored;
  // A folder cut off by a crash or a full disk is never `latest`, so it may go.
  fs::remove_all(partial, ignored);
  try {
    ensure_directory(partial.string());
    const Graph& graph = program.graph();
    const std::string weights = write_tensors((partial / kWeights).string(), program,
                                              persistent_values(graph, is_model_role));
    const std::string optimizer = write_tensors((partial / kOptimizer).string(), program,
                                                persistent_values(graph, is_state_role));
    nlohmann::json state = {
        {"format", kFormat},
        {"step", position.step},
        {"recipe", position.recipe},
        {"progress", position.progress.is_object() ? position.progress : nlohmann::json::object()},
        {"sha256", {{kWeights, weights}, {kOptimizer, optimizer}}}};
    if (position.data.is_object()) state["data"] = position.data;
    if (position.base.is_object()) state["base"] = position.base;
    write_file((partial / kState).string(), json_text(state, 2) + "\n");
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

  remove_others(root, name, keep);
  // The others go on when it is there.
  return program.ranks() == nullptr ? folder.string()
                                    : text_of_first(*program.ranks(), folder.string());
}

void remove_old_checkpoints(const std::string& out, int64_t keep) {
  const auto latest = latest_checkpoint(out);
  if (latest) remove_others(out, fs::path(*latest).filename().string(), keep);
}

std::vector<std::string> kept_checkpoints(const std::string& out) {
  const auto latest = latest_checkpoint(out);
  if (!latest) return {};
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(out, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    std::error_code unknown;
    const bool whole = is_checkpoint_name(name) && step_in(name) >= 0 &&
                       !entry->is_symlink(unknown) && fs::exists(entry->path() / kState, unknown);
    if (whole) names.push_back(name);
  }
  std::ranges::sort(names, std::greater(),
                    [](const std::string& name) { return std::pair(step_in(name), name); });
  std::vector<std::string> folders;
  for (const std::string& name : names) folders.push_back((fs::path(out) / name).string());
  return folders;
}

std::string weights_of_checkpoint(const std::string& folder) {
  const fs::path path = fs::path(folder) / kWeights;
  const nlohmann::json state = read_state(fs::path(folder) / kState);
  user_check(
      state["sha256"].contains(kWeights) && state["sha256"][kWeights] == file_sha256(path.string()),
      "'{}' is damaged: its bytes are not those that were saved", path.string());
  return path.string();
}

nlohmann::json data_of_checkpoint(const std::string& folder) {
  return read_state(fs::path(folder) / kState).value("data", nlohmann::json());
}

nlohmann::json base_of_checkpoint(const std::string& folder) {
  return read_state(fs::path(folder) / kState).value("base", nlohmann::json());
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

Position load_checkpoint(const std::string& folder, Program& program, const nlohmann::json& recipe,
                         const nlohmann::json& data) {
  const fs::path root(folder);
  const nlohmann::json state = read_state(root / kState);
  check_recipe(folder, state["recipe"], recipe);
  if (state.contains("data") && data.is_object()) {
    const std::string difference = difference_of_data(state["data"], data);
    user_check(difference.empty(),
               "the checkpoint in '{}' was made with other data: {}; go on with the same files "
               "(--data-dir), or choose another --out",
               folder, difference);
  }
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
  const auto state_values = persistent_values(graph, is_state_role);
  check_tensors(weights, graph, model_values);
  check_tensors(optimizer, graph, state_values);
  read_tensors(weights, program, model_values);
  read_tensors(optimizer, program, state_values);
  return {state["step"].get<int64_t>(), state["recipe"], state["progress"],
          state.value("data", nlohmann::json())};
}

void load_checkpoint_weights(const std::string& path, Program& program) {
  const SafetensorsFile weights(path);
  const auto values = persistent_values(program.graph(), is_model_role);
  check_tensors(weights, program.graph(), values);
  read_tensors(weights, program, values);
}

}  // namespace thimble
