// The wire format of protocol buffers, read in place: fields one after another, each a number and a
// varint, four or eight bytes, or a run of bytes. Nothing is copied and nothing outside of the
// bytes given is looked at. The bytes may be hostile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace thimble {

struct WireField {
  int number = 0;
  int kind = 0;                           // 0 varint, 1 eight bytes, 2 a run of bytes, 5 four bytes
  uint64_t value = 0;                     // of kinds 0, 1 and 5
  std::span<const std::byte> bytes = {};  // of kind 2

  int64_t whole() const { return static_cast<int64_t>(value); }
  float real() const;  // of kind 5
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  // False: there is none left. UserError where the bytes are no fields.
  bool next(WireField& field);
  // A varint by itself, of packed lists. REQUIRES: !done().
  uint64_t varint();
  bool done() const { return rest_.empty(); }

 private:
  std::span<const std::byte> take(uint64_t count);

  std::span<const std::byte> rest_;
};

}  // namespace thimble
