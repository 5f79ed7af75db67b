#include "graph/op.h"

#include <functional>

namespace thimble {
namespace {

void mix(size_t& seed, size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2);
}

void mix(size_t& seed, const std::vector<TensorType>& types) {
  for (const TensorType& type : types) {
    mix(seed, static_cast<size_t>(type.dtype));
    for (const int64_t extent : type.shape.dims()) mix(seed, static_cast<size_t>(extent));
  }
}

}  // namespace

size_t SignatureHash::operator()(const Signature& signature) const {
  size_t seed = std::hash<const OpDef*>{}(signature.op);
  mix(seed, signature.accumulate);
  mix(seed, signature.inputs);
  mix(seed, signature.outputs);
  mix(seed, std::hash<std::string>{}(to_string(signature.attrs)));
  return seed;
}

Work OpDef::work_of(const Signature& signature) const {
  if (view) return {};
  Work result;
  if (work != nullptr) result = work(signature);
  if (result.bytes == 0) {
    for (const TensorType& type : signature.inputs)
      result.bytes += static_cast<double>(type.bytes().count);
    for (size_t k = 0; k < signature.outputs.size(); ++k) {
      const double passes = ((signature.accumulate >> k) & 1u) != 0 ? 2 : 1;
      result.bytes += passes * static_cast<double>(signature.outputs[k].bytes().count);
    }
  }
  return result;
}

}  // namespace thimble
