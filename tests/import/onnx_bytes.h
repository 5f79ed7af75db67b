// ONNX files for tests, written by hand: fields of onnx.proto3 by their numbers.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

class Message {
 public:
  Message& whole(int field, uint64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& real(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& inner) { return text(field, inner.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

using Wholes = std::vector<int64_t>;
constexpr int64_t kFloat = 1, kInt64 = 7, kString = 8, kHalf = 10;

template <class Number>
std::string raw_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

inline Message tensor(std::string_view name, const Wholes& dims, int64_t type,
                      const std::string& raw) {
  Message made;
  for (const int64_t extent : dims) made.whole(1, static_cast<uint64_t>(extent));
  return made.whole(2, static_cast<uint64_t>(type)).text(8, name).text(9, raw);
}
inline Message floats(std::string_view name, const Wholes& dims,
                      const std::vector<float>& numbers) {
  return tensor(name, dims, kFloat, raw_of(numbers));
}
inline Message wholes(std::string_view name, const Wholes& dims, const Wholes& numbers) {
  return tensor(name, dims, kInt64, raw_of(numbers));
}
// Its bytes in another file.
inline Message tensor_beside(std::string_view name, const Wholes& dims, std::string_view file,
                             int64_t offset, int64_t length) {
  const auto entry = [](std::string_view key, const std::string& value) {
    return Message().text(1, key).text(2, value);
  };
  Message made;
  for (const int64_t extent : dims) made.whole(1, static_cast<uint64_t>(extent));
  return made.whole(2, kFloat)
      .text(8, name)
      .message(13, entry("location", std::string(file)))
      .message(13, entry("offset", std::to_string(offset)))
      .message(13, entry("length", std::to_string(length)))
      .whole(14, 1);
}

inline Message attribute(std::string_view name, int64_t value) {
  return Message().text(1, name).whole(3, static_cast<uint64_t>(value)).whole(20, 2);
}
inline Message attribute(std::string_view name, double value) {
  return Message().text(1, name).real(2, static_cast<float>(value)).whole(20, 1);
}
inline Message attribute(std::string_view name, const char* value) {
  return Message().text(1, name).text(4, value).whole(20, 3);
}
inline Message attribute(std::string_view name, const Wholes& values) {
  Message made = Message().text(1, name);
  for (const int64_t value : values) made.whole(8, static_cast<uint64_t>(value));
  return made.whole(20, 7);
}
inline Message tensor_attribute(std::string_view name, const Message& value) {
  return Message().text(1, name).message(5, value).whole(20, 4);
}
inline Message graph_attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).whole(20, 5);
}

inline Message onnx_node(std::string_view op, const std::vector<std::string>& in,
                         const std::vector<std::string>& out,
                         const std::vector<Message>& attributes = {},
                         std::string_view domain = "") {
  Message made;
  for (const std::string& name : in) made.text(1, name);
  for (const std::string& name : out) made.text(2, name);
  made.text(4, op);
  for (const Message& one : attributes) made.message(5, one);
  if (!domain.empty()) made.text(7, domain);
  return made;
}

// An entrance or exit; an axis of 0 is open.
inline Message end(std::string_view name, int64_t type, const Wholes& dims) {
  Message shape;
  for (const int64_t extent : dims) {
    shape.message(1, extent > 0 ? Message().whole(1, static_cast<uint64_t>(extent))
                                : Message().text(2, "open"));
  }
  const Message of_tensor = Message().whole(1, static_cast<uint64_t>(type)).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, of_tensor));
}

struct OnnxGraphParts {
  std::vector<Message> nodes, tensors, inputs, outputs;

  Message graph() const {
    Message made;
    for (const Message& one : nodes) made.message(1, one);
    for (const Message& one : tensors) made.message(5, one);
    for (const Message& one : inputs) made.message(11, one);
    for (const Message& one : outputs) made.message(12, one);
    return made;
  }
  std::string file(int64_t opset = 17) const {
    return Message()
        .whole(1, 8)
        .message(7, graph())
        .message(8, Message().text(1, "").whole(2, static_cast<uint64_t>(opset)))
        .bytes();
  }
};

}  // namespace thimble
