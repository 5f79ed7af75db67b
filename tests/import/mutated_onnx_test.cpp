// ONNX files that someone damaged: a sentence for each, never a crash.
#include <gtest/gtest.h>

#include <random>

#include "../file_support.h"
#include "base/error.h"
#include "base/io/file.h"
#include "import/onnx/wire.h"
#include "model/model.h"

namespace thimble {
namespace {

const std::string kNets = THIMBLE_TEST_NETS;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// One field somewhere in the tree of messages becomes another, goes, or is there twice; lengths around
// it stay right, so that what is behind the reader is reached.
class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  std::string operator()(const std::string& file) {
    std::string changed = file;
    const int times = 1 + pick(3);
    for (int i = 0; i < times; ++i) changed = message(changed, 0);
    return changed;
  }

 private:
  int pick(int below) { return std::uniform_int_distribution<int>(0, below - 1)(random_); }

  static std::vector<WireField> fields_of(const std::string& bytes) {
    std::vector<WireField> fields;
    try {
      WireReader reader(std::as_bytes(std::span(bytes)));
      for (WireField field; reader.next(field);) fields.push_back(field);
    } catch (const UserError&) {  // a text or numbers, not a message
      return {};
    }
    return fields;
  }

  static std::string written(const WireField& field, const std::string& bytes) {
    std::string text = varint(static_cast<uint64_t>(field.number) << 3 | field.kind);
    if (field.kind == 0) return text + varint(field.value);
    if (field.kind == 2) return text + varint(bytes.size()) + bytes;
    const size_t size = field.kind == 1 ? 8 : 4;
    return text.append(reinterpret_cast<const char*>(&field.value), size);
  }

  std::string message(const std::string& bytes, int depth) {
    const std::vector<WireField> fields = fields_of(bytes);
    if (fields.empty() || depth > 6) return leaf(bytes);
    const size_t at = static_cast<size_t>(pick(static_cast<int>(fields.size())));
    std::string whole;
    for (size_t i = 0; i < fields.size(); ++i) {
      const std::string inner(fields[i].text());
      if (i != at) {
        whole += written(fields[i], inner);
        continue;
      }
      WireField field = fields[i];
      const int what = pick(8);
      if (what == 0) continue;
      if (what == 1) whole += written(field, inner);
      if (what == 2) field.number = 1 + pick(20);
      if (field.kind == 2) {
        whole += written(field, what == 2 ? inner : message(inner, depth + 1));
      } else {
        field.value = number(field.value);
        whole += written(field, "");
      }
    }
    return whole;
  }

  uint64_t number(uint64_t now) {
    constexpr uint64_t kOdd[] = {0,
                                 1,
                                 2,
                                 7,
                                 9,
                                 127,
                                 1 << 20,
                                 0x7fffffff,
                                 uint64_t{1} << 32,
                                 ~uint64_t{0},
                                 uint64_t{1} << 63};
    return pick(3) == 0 ? now + static_cast<uint64_t>(pick(5)) - 2
                        : kOdd[static_cast<size_t>(pick(std::size(kOdd)))];
  }

  std::string leaf(std::string bytes) {
    if (bytes.empty()) return std::string(static_cast<size_t>(pick(9)), 'x');
    const size_t at = random_() % bytes.size();
    switch (pick(4)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at));
        break;
      default:
        bytes = "x";
    }
    return bytes;
  }

  std::mt19937 random_;
};

// The refusal to build it; empty: it was built.
std::string said_of(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  write_file(path, bytes);
  try {
    build_model({.name = path, .batch = 4});
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

class MutatedOnnx : public testing::TestWithParam<const char*> {
 protected:
  std::string file() const {
    return read_text(fmt::format("{}/{}.onnx", kNets, GetParam()), "a net", Bytes(1 << 20));
  }
};

TEST_P(MutatedOnnx, IsBuiltAsItIs) { EXPECT_EQ(said_of(file()), ""); }

TEST_P(MutatedOnnx, IsBuiltOrRefusedWithASentence) {
  int refused = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::string said = said_of(Mutator(seed)(file()));
    refused += said.empty() ? 0 : 1;
    EXPECT_EQ(said.find("a bug in thimble"), std::string::npos) << seed << " " << said;
  }
  EXPECT_GT(refused, 20);  // of 100; many changes change names alone, or numbers of weights
}

TEST_P(MutatedOnnx, BytesThatAreNoFileAreRefused) {
  std::mt19937 random(7);
  const std::string text = file();
  for (int i = 0; i < 100; ++i) {
    std::string damaged = text;
    for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 4 == 0) damaged.resize(random() % damaged.size());
    said_of(damaged);  // throws nothing but UserError
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, MutatedOnnx, testing::Values("pictures", "words"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace thimble
