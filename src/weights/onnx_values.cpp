#include "weights/onnx_values.h"

#include <cstring>

#include "base/error.h"
#include "import/onnx/onnx_model.h"
#include "weights/outside_tensors.h"

namespace thimble {

void load_onnx_values(const std::string& path, Program& program, const ForeignNames& foreign) {
  const OnnxModel onnx = read_onnx(path);
  for (const OutsideTensor& place : foreign_tensors(program.graph(), foreign, true)) {
    const auto found = onnx.tensors.find(place.name);
    if (found == onnx.tensors.end()) continue;
    const TensorType type = type_of(place, program.graph());
    user_check(found->second.shape == type.shape, "'{}' has changed: '{}' is {}, not {}", path,
               place.name, to_string(found->second.shape), to_string(type.shape));
    std::vector<std::byte> bytes(static_cast<size_t>(type.bytes().count));
    with_float_type(type.dtype, [&]<class T>(TypeTag<T>) {
      for (int64_t i = 0; i < type.elements(); ++i) {
        const T number = static_cast<T>(found->second.at(i));
        std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(T)), &number, sizeof(T));
      }
    });
    write_outside_tensor(program, place, bytes);
  }
}

}  // namespace thimble
