// Weights in one safetensors file, in the shards that an index names (model.safetensors.index.json
// of transformers), or partly where they came from: an index of ours names a file beside it, and
// tensors of another file, or of the index of several, that nothing was copied from.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/safetensors.h"

namespace thimble {

// The files that hold the tensors: the path itself, or those that an index names, in order of
// names.
std::vector<std::string> files_of_weights(const std::string& path);

class SafetensorsShards {
 public:
  // Every file is opened and checked. UserError naming the one at fault, also where the index names
  // a tensor that its shard does not have.
  explicit SafetensorsShards(const std::string& path);

  struct Found {
    const SafetensorsFile* file = nullptr;
    const StoredTensor* stored = nullptr;
  };
  // No file: there is no such tensor.
  Found find(std::string_view name) const;
  // UserError when there is no such tensor, or one of a type that is not read.
  Found at(std::string_view name) const;
  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  // Whether the tensor was left where it came from.
  bool is_elsewhere(std::string_view name) const { return elsewhere_.contains(name); }
  bool has_elsewhere() const { return !elsewhere_.empty(); }

 private:
  void add(const std::string& path);

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::string, std::less<>> elsewhere_;  // names there
};

}  // namespace thimble
