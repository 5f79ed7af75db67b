#include "import/onnx/wire.h"

#include <cstring>

#include "base/error.h"

namespace thimble {

float WireField::real() const {
  const auto bits = static_cast<uint32_t>(value);
  float result = 0;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

std::span<const std::byte> WireReader::take(uint64_t count) {
  user_check(count <= rest_.size(), "it ends in the middle of a field");
  const std::span<const std::byte> taken = rest_.first(static_cast<size_t>(count));
  rest_ = rest_.subspan(static_cast<size_t>(count));
  return taken;
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = std::to_integer<uint64_t>(take(1)[0]);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  user_error("it has a number of more than ten bytes");
}

bool WireReader::next(WireField& field) {
  if (done()) return false;
  const uint64_t tag = varint();
  field = {};
  user_check(tag >> 3 >= 1 && tag >> 3 < (1u << 29), "it has a field of no number");
  field.number = static_cast<int>(tag >> 3);
  field.kind = static_cast<int>(tag & 7);
  const auto fixed = [&](size_t size) { std::memcpy(&field.value, take(size).data(), size); };
  switch (field.kind) {
    case 0:
      field.value = varint();
      break;
    case 1:
      fixed(8);
      break;
    case 2:
      field.bytes = take(varint());
      break;
    case 5:
      fixed(4);
      break;
    default:
      user_error("it has a field of kind {}, which nobody writes", field.kind);
  }
  return true;
}

}  // namespace thimble
