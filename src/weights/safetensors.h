// The safetensors format: how weights leave and enter.
//
//   ┌────────────┬──────────────────────────────────────────────┬─────────────────────────┐
//   │ u64 LE: N  │ N bytes of JSON, padded with spaces to 8     │ the tensors, no holes   │
//   └────────────┴──────────────────────────────────────────────┴─────────────────────────┘
//   JSON: {"__metadata__": {key: text}, NAME: {"dtype", "shape", "data_offsets": [begin, end]}}
//   with offsets counted from the end of the JSON.
//
// Neither side ever holds the data in memory: it is streamed from and to the caller's own bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/file.h"
#include "base/io/sha256.h"
#include "base/number/shape.h"

namespace thimble {

struct TensorToWrite {
  std::string name;
  TensorType type;
  // Where the bytes are: here, or (when `fetch` is set) asked for piece by piece, in order.
  // fetch(offset, out) fills `out` with the tensor's bytes from `offset` on.
  std::span<const std::byte> bytes = {};
  std::function<void(int64_t offset, std::span<std::byte> out)> fetch = {};
};

// Writes the file atomically (base/io/file.h). The same tensors give the same file to the byte, in
// whatever order they are given: widest elements first, so that all of them are aligned, then by
// name. `hash`, where given, takes the bytes as they go to the file. REQUIRES: names differ,
// `bytes` (when used) has the size of `type`.
void write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {},
                       Sha256* hash = nullptr);

// The same with nowhere to write: asks for every piece of every tensor in the order of the file.
void stream_safetensors(std::span<const TensorToWrite> tensors);

struct StoredTensor {
  std::string name;
  TensorType type;
  int64_t offset = 0;  // of its first byte in the file
};

// An opened file, fully checked: after construction every tensor lies inside the file, has the
// bytes that its shape wants, and shares none of them. Throws UserError naming the file otherwise.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(std::string path);

  const std::string& path() const { return file_.path(); }
  // Sorted by name. Tensors of element types without a DType (I16, BOOL, ...) are left out.
  std::span<const StoredTensor> tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // nullptr when the file has no such tensor.
  const StoredTensor* find(std::string_view name) const;
  // UserError when the file has no such tensor, or has it in a type that is not read.
  const StoredTensor& at(std::string_view name) const;

  // Reads the whole tensor; UserError when it is not there or `out` is not exactly its size.
  void read_into(std::string_view name, std::span<std::byte> out) const;
  // Reads out.size() bytes of it from its byte `begin` on, for a copy through a small buffer.
  void read_part(const StoredTensor& tensor, int64_t begin, std::span<std::byte> out) const;

 private:
  ReadFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string, std::less<>>
      foreign_;  // the tensors left out, and their types
  std::map<std::string, std::string> metadata_;
};

// All of a tensor of a floating type, as f32. UserError where there is none of that name.
std::vector<float> numbers_of(const SafetensorsFile& file, std::string_view name);

}  // namespace thimble
