#include "weights/safetensors_shards.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/io/json.h"

namespace thimble {
namespace {

constexpr std::string_view kIndexEnd = ".index.json";

// By file: the tensors that it should have.
std::map<std::string, std::vector<std::string>> read_index(const std::string& path) {
  const nlohmann::json index = read_json(path, "an index of weights");
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

}  // namespace

std::vector<std::string> files_of_weights(const std::string& path) {
  if (!path.ends_with(kIndexEnd)) return {path};
  std::vector<std::string> files;
  for (const auto& [file, tensors] : read_index(path)) files.push_back(file);
  return files;
}

SafetensorsShards::SafetensorsShards(const std::string& path) {
  if (!path.ends_with(kIndexEnd)) {
    files_.push_back(std::make_unique<SafetensorsFile>(path));
    return;
  }
  for (const auto& [shard, tensors] : read_index(path)) {
    files_.push_back(std::make_unique<SafetensorsFile>(shard));
    for (const std::string& tensor : tensors) {
      user_check(files_.back()->find(tensor) != nullptr,
                 "'{}' says that '{}' is in '{}', which does not have it", path, tensor, shard);
    }
  }
}

SafetensorsShards::Found SafetensorsShards::find(std::string_view name) const {
  for (const auto& file : files_) {
    if (const StoredTensor* stored = file->find(name)) return {file.get(), stored};
  }
  return {};
}

SafetensorsShards::Found SafetensorsShards::at(std::string_view name) const {
  const Found found = find(name);
  if (found.file != nullptr) return found;
  return {files_.front().get(), &files_.front()->at(name)};  // which says why not
}

}  // namespace thimble
