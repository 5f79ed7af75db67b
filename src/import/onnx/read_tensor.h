// TensorProto, and what its types are here.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx/onnx_model.h"
#include "import/onnx/wire.h"

namespace thimble {

// A type of ONNX's. `dtype` is that of raw bytes; types of few bits are read number by number.
struct OnnxType {
  DType dtype = DType::f32;
  bool whole = false;
  int bytes = 0;  // of an element; 0: it cannot be read
};
OnnxType onnx_type(uint64_t code);
// "string", "int16", "type 99".
std::string onnx_type_name(uint64_t code);

// Files beside the one that is read, each opened once.
class FilesBeside {
 public:
  explicit FilesBeside(std::string path) : path_(std::move(path)) {}

  // UserError for a name that leads out of the folder, a file that is not there or too short.
  std::span<const std::byte> part(const std::string& name, int64_t offset, int64_t length,
                                  OnnxModel& model);

 private:
  std::string path_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

OnnxTensor read_onnx_tensor(std::span<const std::byte> bytes, OnnxModel& model,
                            FilesBeside& beside);

// Fields of numbers, packed or one by one.
std::vector<int64_t> wholes_in(const WireField& field);
void append_floats(const WireField& field, std::vector<double>& to);

}  // namespace thimble
