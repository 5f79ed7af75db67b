// Weights in one safetensors file, or in the shards that an index names
// (model.safetensors.index.json of transformers).
#pragma once

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

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
};

}  // namespace thimble
