#include "weights/safetensors_shards.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/json.h"

namespace thimble {
namespace {

constexpr std::string_view kIndexEnd = ".index.json";

constexpr std::string_view kOurs = "thimble_weights";
constexpr int64_t kFormat = 1;

using nlohmann::json;

// By file: the tensors that it should have.
std::map<std::string, std::vector<std::string>> shards_of(const json& index,
                                                          const std::string& path) {
  const bool mapped = index.is_object() && index.contains("weight_map") &&
                      index["weight_map"].is_object() && !index["weight_map"].empty();
  user_check(mapped, "'{}' has no \"weight_map\" that says which file each tensor is in", path);
  std::map<std::string, std::vector<std::string>> shards;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    const bool beside = !name.empty() && name.find('/') == std::string::npos &&
                        name.find('\0') == std::string::npos;
    user_check(beside, "'{}' says that '{}' is in {}, which names no file beside it", path, tensor,
               json_text(file));
    shards[(folder / name).string()].push_back(tensor);
  }
  return shards;
}

bool is_ours(const json& index) { return index.is_object() && index.contains(kOurs); }

struct Apart {
  std::string own, base;  // files
  std::map<std::string, std::string, std::less<>> tensors;
};

// Paths are the index's own to say: it is written where the folder of the base is known.
Apart parts_of(const json& index, const std::string& path) {
  const auto text = [&](const char* key) {
    const bool fine = index.contains(key) && index[key].is_string() &&
                      !index[key].get_ref<const std::string&>().empty() &&
                      index[key].get_ref<const std::string&>().find('\0') == std::string::npos;
    user_check(fine, "'{}' names no \"{}\"; write it anew with thimble.torch.export", path, key);
    return (std::filesystem::path(path).parent_path() / index[key].get<std::string>()).string();
  };
  user_check(index[kOurs] == kFormat,
             "'{}' is an index of format {}, and this program reads format {}; write it anew with "
             "the thimble package of this version",
             path, json_text(index[kOurs]).substr(0, 40), kFormat);
  Apart apart = {.own = text("own"), .base = text("base")};
  const bool mapped = index.contains("tensors") && index["tensors"].is_object();
  user_check(mapped && apart.base != path && apart.own != path,
             "'{}' names no tensors of another file; write it anew with thimble.torch.export",
             path);
  for (const auto& [name, there] : index["tensors"].items()) {
    user_check(there.is_string(), "'{}' does not say what '{}' is called in '{}'", path, name,
               apart.base);
    apart.tensors[name] = there.get<std::string>();
  }
  return apart;
}

json read_index(const std::string& path) { return read_json(path, "an index of weights"); }

// The base of an index is no index of ours: there is an end to it.
std::vector<std::string> files_of_base(const std::string& path) {
  if (!path.ends_with(kIndexEnd)) return {path};
  std::vector<std::string> files;
  for (const auto& [file, tensors] : shards_of(read_index(path), path)) files.push_back(file);
  return files;
}

}  // namespace

std::vector<std::string> files_of_weights(const std::string& path) {
  if (!path.ends_with(kIndexEnd)) return {path};
  const json index = read_index(path);
  if (!is_ours(index)) return files_of_base(path);
  const Apart apart = parts_of(index, path);
  std::vector<std::string> files = files_of_base(apart.base);
  if (apart.base.ends_with(kIndexEnd)) files.push_back(apart.base);
  files.push_back(apart.own);
  return files;
}

void SafetensorsShards::add(const std::string& path) {
  if (!path.ends_with(kIndexEnd)) {
    files_.push_back(std::make_unique<SafetensorsFile>(path));
    return;
  }
  for (const auto& [shard, tensors] : shards_of(read_index(path), path)) {
    user_check(exists(shard), "'{}' says that '{}' is in '{}', which is not there; fetch it, too",
               path, tensors.front(), shard);
    files_.push_back(std::make_unique<SafetensorsFile>(shard));
    for (const std::string& tensor : tensors) {
      user_check(files_.back()->find(tensor) != nullptr,
                 "'{}' says that '{}' is in '{}', which does not have it", path, tensor, shard);
    }
  }
}

SafetensorsShards::SafetensorsShards(const std::string& path) {
  if (path.ends_with(kIndexEnd) && exists(path)) {
    const json index = read_index(path);
    if (is_ours(index)) {
      Apart apart = parts_of(index, path);
      user_check(exists(apart.base),
                 "'{}' says that weights are in '{}', which is not there; put it "
                 "back",
                 path, apart.base);
      add(apart.base);
      add(apart.own);
      elsewhere_ = std::move(apart.tensors);
      return;
    }
  }
  add(path);
}

SafetensorsShards::Found SafetensorsShards::find(std::string_view name) const {
  const auto there = elsewhere_.find(name);
  const std::string_view stored_name = there == elsewhere_.end() ? name : there->second;
  for (const auto& file : files_) {
    // A name in the base is no name of ours.
    if (!elsewhere_.empty() && there == elsewhere_.end() && file != files_.back()) continue;
    if (const StoredTensor* stored = file->find(stored_name)) return {file.get(), stored};
  }
  return {};
}

SafetensorsShards::Found SafetensorsShards::at(std::string_view name) const {
  const Found found = find(name);
  if (found.file != nullptr) return found;
  const auto there = elsewhere_.find(name);
  if (there != elsewhere_.end()) return {files_.front().get(), &files_.front()->at(there->second)};
  // Which says why not.
  const SafetensorsFile& file = elsewhere_.empty() ? *files_.front() : *files_.back();
  return {&file, &file.at(name)};
}

}  // namespace thimble
