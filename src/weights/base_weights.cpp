#include "weights/base_weights.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/file_digest.h"
#include "weights/safetensors_shards.h"
#include "weights/weights_file.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

int64_t size_of_file(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? -1 : static_cast<int64_t>(size);
}

nlohmann::json describe_file(const std::string& path) {
  return {{"path", path}, {"bytes", size_of_file(path)}, {"sha256", file_sha256(path)}};
}

std::string text_in(const nlohmann::json& described, const char* key) {
  const bool there = described.is_object() && described.contains(key) && described[key].is_string();
  return there ? described[key].get<std::string>() : std::string();
}

void check_file(const nlohmann::json& described, const std::string& checkpoint) {
  const std::string path = text_in(described, "path");
  user_check(!path.empty() && exists(path),
             "the frozen weights of the checkpoint in '{}' are those of '{}', which is not there; "
             "put it back",
             checkpoint, path);
  user_check(described.value("bytes", nlohmann::json(-1)) == size_of_file(path) &&
                 text_in(described, "sha256") == file_sha256(path),
             "the frozen weights of the checkpoint in '{}' are those that '{}' held, and it has "
             "changed since; put the old file back",
             checkpoint, path);
}

}  // namespace

bool has_frozen(const Graph& graph) {
  return std::ranges::any_of(graph.values,
                             [](const Value& value) { return value.role == Role::frozen; });
}

nlohmann::json describe_base(const std::string& path) {
  if (path.empty()) return {};
  std::error_code unknown;
  const std::string whole = fs::absolute(path, unknown).string();
  nlohmann::json described = describe_file(whole);
  for (const std::string& file : files_of_weights(whole)) {
    if (file != whole) described["shards"].push_back(describe_file(file));
  }
  return described;
}

std::string base_file(const nlohmann::json& described, const std::string& checkpoint) {
  check_file(described, checkpoint);
  if (described.contains("shards")) {
    for (const nlohmann::json& shard : described["shards"]) check_file(shard, checkpoint);
  }
  return text_in(described, "path");
}

void load_base(const nlohmann::json& described, const std::string& checkpoint, Program& program,
               const Model& model) {
  if (!described.is_object()) return;
  const std::string path = base_file(described, checkpoint);
  std::error_code unknown;
  const bool there =
      !model.first_values.empty() && fs::absolute(model.first_values, unknown).string() == path;
  if (!there) load_weights(path, program, model.foreign);
}

}  // namespace thimble
