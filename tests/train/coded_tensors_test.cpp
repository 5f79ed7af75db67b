// Frozen matrices in few bits, in from files and out as numbers.
#include "weights/coded_tensors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/io/sha256.h"
#include "execute/costs.h"
#include "file_support.h"
#include "graph/builder.h"
#include "plan/make_plan.h"
#include "weights/weights_file.h"

namespace thimble {
namespace {

constexpr int64_t kRows = 37, kColumns = 130;

// The numbers of base/nf4_test.cpp, whose codes are those of bitsandbytes.
std::vector<float> numbers_to_code() {
  std::vector<float> numbers;
  uint32_t state = 12345;
  for (int64_t i = 0; i < kRows * kColumns; ++i) {
    state = state * 1664525u + 1013904223u;
    const float u = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
    const float cube = u * u * u;
    numbers.push_back(cube * (1.0F / static_cast<float>(1 << (i / kNf4Block % 5))));
  }
  return numbers;
}

std::string digest(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

// A product with one coded matrix, "w".
class Coded {
 public:
  explicit Coded(CodedFormat format) : matrix_{format, kRows, kColumns} {
    Builder b(graph_);
    std::vector<ValueId> inputs = {b.input("x", {{2, kColumns}})};
    const std::vector<TensorType> types = matrix_.types();
    for (size_t i = 0; i < types.size(); ++i) {
      inputs.push_back(b.frozen("w" + std::string(matrix_.suffixes()[i]), types[i]));
    }
    Attrs attrs = attrs_of(matrix_);
    attrs.set("transpose", int64_t{1});
    graph_.results = {b.op("coded_matmul", inputs, attrs)};
    backend_ = make_backend("cpu", {.threads = 1});
    const Costs costs = gather_costs(graph_, *backend_);
    plan_ = std::get<Plan>(make_plan({.graph = graph_, .costs = costs}));
    arena_ = backend_->allocate(plan_.arena);
    program_ = std::make_unique<Program>(graph_, plan_, *backend_, *arena_);
  }

  Program& program() { return *program_; }
  const Plan& plan() const { return plan_; }
  std::string digest_of(std::string_view name) {
    const ValueId value = graph_.find(name);
    std::vector<std::byte> bytes(static_cast<size_t>(graph_[value].type.bytes().count));
    program_->read(value, 0, bytes);
    return digest(bytes);
  }
  std::vector<float> decoded() {
    std::vector<float> numbers(static_cast<size_t>(matrix_.elements()));
    read_coded(*program_, find_coded_weights(graph_)[0], 0,
               std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

 private:
  CodedMatrix matrix_;
  Graph graph_;
  std::unique_ptr<Backend> backend_;
  Plan plan_;
  std::unique_ptr<Memory> arena_;
  std::unique_ptr<Program> program_;
};

template <class T>
TensorToWrite tensor(std::string name, const std::vector<T>& numbers, TensorType type) {
  return {std::move(name), type, std::as_bytes(std::span(numbers))};
}

std::string dense_file(const TemporaryFolder& folder, const std::vector<float>& numbers) {
  const std::vector<TensorToWrite> tensors = {tensor("w", numbers, {{kRows, kColumns}})};
  write_safetensors(folder / "dense.safetensors", tensors);
  return folder / "dense.safetensors";
}

TEST(CodedTensors, AreCodedWhileTheyAreLoadedAsBitsandbytesDoes) {
  const TemporaryFolder folder;
  const std::string path = dense_file(folder, numbers_to_code());
  Coded nf4(CodedFormat::nf4);
  load_weights(path, nf4.program());
  EXPECT_EQ(nf4.digest_of("w"), "45bdf4aeac7baa40d5c1f38b7ca8848200a47bf2d3fbe7e06d5787470a38310f");
  EXPECT_EQ(nf4.digest_of("w.absmax"),
            "4f5121be2d5b6d22a73b0db09cab7a2cd451d7cf0100eafcd7f77769f217feb1");
  EXPECT_EQ(digest(std::as_bytes(std::span<const float>(nf4.decoded()))),
            "226a6d196fe98c1f676a3c276dcc76093bf480ac5af33bbc292493c4375467dd");
  Coded int8(CodedFormat::int8);
  load_weights(path, int8.program());
  EXPECT_EQ(int8.digest_of("w"),
            "985c198404b69d3cbf2d97cadb4cb34e91301666bd14fe07a7d17d372d72c4d0");
  EXPECT_EQ(int8.digest_of("w.SCB"),
            "a94cd7740edaa73ef453614fddc50e04f5d9d9259a4c9355010ee50cd59eda77");
  EXPECT_EQ(digest(std::as_bytes(std::span<const float>(int8.decoded()))),
            "f7d4015547c3bd20ec9bafd897d9de4f2e39068007f3c213f1b1ee1be80e2b7a");
}

TEST(CodedTensors, RefuseNumbersThatTheFormatHasNot) {
  const TemporaryFolder folder;
  std::vector<float> numbers = numbers_to_code();
  numbers[200] = 70000;  // fp16 ends at 65504
  const std::string large = dense_file(folder, numbers);
  Coded int8(CodedFormat::int8), nf4(CodedFormat::nf4), f16(CodedFormat::f16);
  EXPECT_TRUE(throws_saying<UserError>([&] { load_weights(large, int8.program()); }, "'w'", "fp16",
                                       "--frozen nf4"));
  EXPECT_TRUE(
      throws_saying<UserError>([&] { load_weights(large, f16.program()); }, "'w'", "beyond f16"));
  load_weights(large, nf4.program());
  EXPECT_NEAR(nf4.decoded()[200], 70000, 70000 / 128.0);  // its block's scale, in 8 bits
  numbers[300] = std::nanf("");
  const std::string none = dense_file(folder, numbers);
  EXPECT_TRUE(
      throws_saying<UserError>([&] { load_weights(none, nf4.program()); }, "'w'", "not finite"));
}

// Scratch of the product is panels of the matrix, never all of it.
TEST(CodedTensors, StateTheScratchOfPanels) {
  const Coded nf4(CodedFormat::nf4);
  EXPECT_LT(nf4.plan().peak_by_role[static_cast<size_t>(Role::frozen)].count,
            kRows * kColumns * 6 / 10);
}

// A file as bitsandbytes writes it, with some of it changed.
std::string four_bit_file(const TemporaryFolder& folder, const std::string& state,
                          const std::string& without = "", float level = 1) {
  const std::vector<float> numbers = numbers_to_code();
  const int64_t count = std::ssize(numbers);
  std::vector<uint8_t> codes(static_cast<size_t>(nf4_code_bytes(count)));
  Nf4Coder coder(count);
  coder.add(numbers, codes);
  const Nf4Coder::Scales scales = coder.finish();
  std::vector<float> levels(kNf4Levels.begin(), kNf4Levels.end());
  levels.back() = level;
  const std::vector<float> map(nf4_scale_map().begin(), nf4_scale_map().end());
  const std::vector<char> text(state.begin(), state.end());
  std::vector<TensorToWrite> tensors = {
      tensor("w", codes, {{nf4_code_bytes(count), 1}, DType::u8}),
      tensor("w.absmax", scales.absmax, {{nf4_blocks(count)}, DType::u8}),
      tensor("w.nested_absmax", scales.nested, {{nf4_nested(count)}}),
      tensor("w.quant_map", levels, {{16}}),
      tensor("w.nested_quant_map", map, {{256}}),
      tensor("w.quant_state.bitsandbytes__nf4", text, {{std::ssize(text)}, DType::u8})};
  std::erase_if(tensors, [&](const TensorToWrite& one) { return one.name == without; });
  write_safetensors(folder / "four_bits.safetensors", tensors);
  return folder / "four_bits.safetensors";
}

std::string state(int64_t block = 64, const char* shape = "[37, 130]") {
  return fmt::format(R"({{"quant_type": "nf4", "blocksize": {}, "dtype": "float32", "shape": {}, )"
                     R"("nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": {}}})",
                     block, shape, std::bit_cast<float>(0x3d40ad2eu));
}

TEST(CodedTensors, AreReadFromFourBitFilesAsTheyAre) {
  const TemporaryFolder folder;
  Coded nf4(CodedFormat::nf4);
  load_weights(four_bit_file(folder, state()), nf4.program());
  EXPECT_EQ(digest(std::as_bytes(std::span<const float>(nf4.decoded()))),
            "226a6d196fe98c1f676a3c276dcc76093bf480ac5af33bbc292493c4375467dd");
}

// Out and in again: the same codes and scales.
TEST(CodedTensors, AreWrittenAsFourBitFilesHaveThem) {
  const TemporaryFolder folder;
  Coded first(CodedFormat::nf4), second(CodedFormat::nf4);
  load_weights(dense_file(folder, numbers_to_code()), first.program());
  save_weights(folder / "coded.safetensors", first.program(), {}, true);
  EXPECT_EQ(SafetensorsFile(folder / "coded.safetensors").at("w").type,
            (TensorType{{nf4_code_bytes(kRows * kColumns), 1}, DType::u8}));
  load_weights(folder / "coded.safetensors", second.program());
  for (const char* part : {"w", "w.absmax", "w.nested_absmax", "w.nested_offset"}) {
    EXPECT_EQ(second.digest_of(part), first.digest_of(part)) << part;
  }
}

TEST(CodedTensors, RefuseOtherFourBitFilesByName) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& path, CodedFormat format, const std::string& why) {
    Coded net(format);
    EXPECT_TRUE(throws_saying<UserError>([&] { load_weights(path, net.program()); }, "'w", why));
  };
  refused(four_bit_file(folder, state(128)), CodedFormat::nf4, "blocks of another size than 64");
  refused(four_bit_file(folder, state(64, "[130, 37]")), CodedFormat::nf4, "another model");
  refused(four_bit_file(folder, "{"), CodedFormat::nf4, "damaged");
  refused(four_bit_file(folder, state(), "", 0.9F), CodedFormat::nf4, "other levels");
  refused(four_bit_file(folder, state(), "w.absmax"), CodedFormat::nf4, "w.absmax");
  refused(four_bit_file(folder, state()), CodedFormat::int8, "--frozen nf4");
}

}  // namespace
}  // namespace thimble
