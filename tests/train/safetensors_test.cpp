#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "../file_support.h"
#include "base/error.h"
#include "support/sanitized.h"

namespace thimble {
namespace {

std::string length_bytes(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(length >> (8 * i)));
  return bytes;
}

std::string file_of(std::string_view header, std::string_view data) {
  return length_bytes(header.size()) + std::string(header) + std::string(data);
}

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + 7);
  return bytes;
}

// Opens and reads everything; UserError is an answer, anything else is a failure of the test.
void read_all(const std::string& path) {
  const SafetensorsFile file(path);
  for (const StoredTensor& tensor : file.tensors()) {
    std::vector<std::byte> bytes(static_cast<size_t>(tensor.type.bytes().count));
    file.read_into(tensor.name, bytes);
  }
}

TEST(Safetensors, WritesTheFormatToTheByte) {
  const TemporaryFolder folder;
  const std::vector<std::byte> narrow = {std::byte{'n'}};
  const std::vector<std::byte> wide = {std::byte{'w'}, std::byte{'i'}, std::byte{'d'},
                                       std::byte{'e'}};
  const std::vector<TensorToWrite> tensors = {
      {.name = "a", .type = {Shape{1}, DType::u8}, .bytes = narrow},
      {.name = "b", .type = {Shape{1, 1}, DType::f32}, .bytes = wide}};
  write_safetensors(folder / "w", tensors, {{"step", "300"}});
  // Spaces fill the header up to a multiple of eight: here 144.
  const std::string header = R"({"__metadata__":{"step":"300"},)"
                             R"("b":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})";
  ASSERT_EQ(header.size(), 138u);
  EXPECT_EQ(slurp(folder / "w"), length_bytes(144) + header + "      " + "widen");
}

TEST(Safetensors, RoundTripsEveryTypeAndIgnoresTheGivenOrder) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = pattern(8 * 24);
  std::vector<TensorToWrite> tensors;
  for (const DType dtype :
       {DType::u8, DType::f16, DType::bf16, DType::i32, DType::f32, DType::i64, DType::f64}) {
    const TensorType type{Shape{2, 3, 4}, dtype};
    tensors.push_back({.name = std::string(name_of(dtype)),
                       .type = type,
                       .bytes = std::span(bytes).first(static_cast<size_t>(type.bytes().count))});
  }
  tensors.push_back({.name = "scalar \"1\" \xc3\xa9",
                     .type = {Shape(), DType::f32},
                     .bytes = std::span(bytes).first(4)});
  tensors.push_back({.name = "none", .type = {Shape{0, 5}, DType::f32}});
  write_safetensors(folder / "w", tensors);

  const SafetensorsFile file(folder / "w");
  EXPECT_EQ(file.tensors().size(), tensors.size());
  EXPECT_TRUE(file.metadata().empty());
  for (const TensorToWrite& tensor : tensors) {
    const StoredTensor& stored = file.at(tensor.name);
    EXPECT_EQ(stored.type, tensor.type);
    EXPECT_EQ(stored.offset % size_of(tensor.type.dtype), 0) << "aligned";
    std::vector<std::byte> out(tensor.bytes.size());
    file.read_into(tensor.name, out);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), tensor.bytes.begin()));
  }

  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(folder / "again", tensors);
  EXPECT_EQ(slurp(folder / "w"), slurp(folder / "again"));
}

TEST(Safetensors, FetchesLargeTensorsPieceByPiece) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = pattern(1'000'001);
  size_t largest = 0;
  const std::vector<TensorToWrite> tensors = {
      {.name = "big",
       .type = {Shape{1'000'001}, DType::u8},
       .fetch = [&](int64_t offset, std::span<std::byte> out) {
         largest = std::max(largest, out.size());
         std::memcpy(out.data(), bytes.data() + offset, out.size());
       }}};
  write_safetensors(folder / "w", tensors);
  EXPECT_LE(largest, 256u * 1024);
  const SafetensorsFile file(folder / "w");
  std::vector<std::byte> out(bytes.size());
  file.read_into("big", out);
  EXPECT_EQ(out, bytes);
  std::vector<std::byte> part(10);
  file.read_part(file.at("big"), 999'991, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.end() - 10));
}

TEST(Safetensors, HashesTheFileAsItIsWritten) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = pattern(300'001);
  const TensorType type = {Shape{300'001}, DType::u8};
  const std::vector<TensorToWrite> tensors = {
      {.name = "here", .type = type, .bytes = bytes},
      {.name = "fetched", .type = type, .fetch = [&](int64_t at, std::span<std::byte> out) {
         std::memcpy(out.data(), bytes.data() + at, out.size());
       }}};
  Sha256 hash;
  write_safetensors(folder / "w", tensors, {{"step", "300"}}, &hash);
  const std::string written = slurp(folder / "w");
  EXPECT_EQ(hash.hex(), sha256_hex(std::as_bytes(std::span(written))));
}

TEST(Safetensors, AFailingFetchLeavesNoFile) {
  const TemporaryFolder folder;
  const std::vector<TensorToWrite> tensors = {
      {.name = "x", .type = {Shape{4}, DType::u8}, .fetch = [](int64_t, std::span<std::byte>) {
         throw std::runtime_error("device lost");
       }}};
  EXPECT_THROW(write_safetensors(folder / "w", tensors), std::runtime_error);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, NamesWhatDoesNotMatchTheModel) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = pattern(8);
  write_safetensors(
      folder / "w",
      std::vector<TensorToWrite>{{.name = "x", .type = {Shape{2}, DType::f32}, .bytes = bytes}});
  const SafetensorsFile file(folder / "w");
  std::vector<std::byte> out(4);
  EXPECT_EQ(file.find("y"), nullptr);
  EXPECT_TRUE(throws_saying<UserError>([&] { file.read_into("y", out); }, "has no tensor 'y'",
                                       folder / "w"));
  EXPECT_TRUE(throws_saying<UserError>([&] { file.read_into("x", out); },
                                       "stores 'x' as f32[2] (8 bytes) where 4 bytes are wanted"));
}

struct Hostile {
  std::string why;  // expected in the message
  std::string content;
};

std::vector<Hostile> hostile_files() {
  const auto tensor = [](std::string_view dtype, std::string_view shape, std::string_view offsets) {
    return fmt::format(R"({{"x":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                       offsets);
  };
  const std::string good = R"({"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const std::string deep(1'000'000, '[');
  const std::string deep_objects = [] {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "{\"shape\":";
    return text;
  }();
  return {
      {"only 0 bytes", ""},
      {"only 7 bytes", "1234567"},
      {"claims a header of 18446744073709551615 bytes", length_bytes(~uint64_t{0}) + "{}"},
      {"claims a header of 9223372036854775808", length_bytes(uint64_t{1} << 63) + "{}"},
      {"claims a header of 3 bytes", length_bytes(3) + "{}"},
      {"start with a brace", file_of("", "")},
      {"start with a brace", file_of(" {}", "")},
      {"start with a brace", file_of(deep, "")},
      {"well-formed", file_of("{", "")},
      {"well-formed", file_of("{}{}", "")},
      {"well-formed", file_of("{\"a\xff\":{}}", "")},
      {"well-formed", file_of(tensor("\"U8\"", "[1e999]", "[0,1]"), "a")},
      {"a list where none belongs", file_of("{\"x\":" + deep, "")},
      {"an object where none belongs", file_of(deep_objects, "")},
      {"a list where none belongs", file_of(tensor("\"U8\"", "[[[1]]]", "[0,1]"), "a")},
      {"a number where none belongs", file_of(R"({"x":1})", "")},
      {"null where none belongs", file_of(R"({"x":null})", "")},
      {"a text where none belongs", file_of(R"({"x":"y"})", "")},
      {"a number where none belongs", file_of(R"({"__metadata__":{"a":1}})", "")},
      {"an object where none belongs", file_of(R"({"__metadata__":{"a":{}}})", "")},
      {"its metadata has 'a' twice", file_of(R"({"__metadata__":{"a":"1","a":"2"}})", "")},
      {"names 'x' twice", file_of("{\"x\":" + good + ",\"x\":" + good + "}", "ab")},
      {"two fields 'dtype'", file_of(R"({"x":{"dtype":"U8","dtype":"U8"}})", "")},
      {"two fields 'shape'", file_of(R"({"x":{"shape":[],"shape":[]}})", "")},
      {"unknown field 'size'", file_of(R"({"x":{"size":1}})", "")},
      {"lacks its dtype", file_of(R"({"x":{}})", "")},
      {"lacks its dtype", file_of(tensor("\"U8\"", "[0]", "[0]"), "")},
      {"type 'F8', which thimble does not know", file_of(tensor("\"F8\"", "[1]", "[0,1]"), "a")},
      {"a number where none belongs", file_of(tensor("8", "[1]", "[0,1]"), "a")},
      {"a number where none belongs", file_of(tensor("\"U8\"", "1", "[0,1]"), "a")},
      {"the negative number -1", file_of(tensor("\"U8\"", "[-1]", "[0,1]"), "a")},
      {"the negative number -2", file_of(tensor("\"U8\"", "[1]", "[-2,1]"), "a")},
      {"no 64-bit whole number", file_of(tensor("\"U8\"", "[1.5]", "[0,1]"), "a")},
      {"no 64-bit whole number", file_of(tensor("\"U8\"", "[99999999999999999999]", "[0,1]"), "a")},
      {"beyond any file", file_of(tensor("\"U8\"", "[18446744073709551615]", "[0,1]"), "a")},
      {"more than 6 numbers", file_of(tensor("\"U8\"", "[1,1,1,1,1,1,1]", "[0,1]"), "a")},
      {"more than 2 numbers", file_of(tensor("\"U8\"", "[1]", "[0,1,2]"), "a")},
      {"impossible shape",
       file_of(tensor("\"F32\"", "[4294967296,4294967296,4294967296]", "[0,0]"), "")},
      {"impossible shape",
       file_of(tensor("\"F32\"", "[0,9223372036854775807,9223372036854775807]", "[0,0]"), "")},
      {"impossible shape", file_of(tensor("\"F64\"", "[2305843009213693952]", "[0,0]"), "")},
      {"needs 4 bytes but its data_offsets are 0 and 1",
       file_of(tensor("\"F32\"", "[1]", "[0,1]"), "a")},
      {"needs 1 bytes but its data_offsets are 1 and 0",
       file_of(tensor("\"U8\"", "[1]", "[1,0]"), "a")},
      {"take 2 bytes but 1 bytes of data follow the header (truncated)",
       file_of("{\"x\":" + good + "}", "a")},
      {"take 2 bytes but 3 bytes of data follow the header (oversized)",
       file_of("{\"x\":" + good + "}", "abc")},
      {"inside another", file_of("{\"x\":" + good + ",\"y\":" + good + "}", "ab")},
      {"inside another",
       file_of("{\"x\":" + good + R"(,"y":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
               "abc")},
      {"after a hole",
       file_of("{\"x\":" + good + R"(,"y":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
               "abcd")},
  };
}

TEST(Safetensors, RefusesHostileFiles) {
  const TemporaryFolder folder;
  for (const Hostile& file : hostile_files()) {
    spill(folder / "w", file.content);
    EXPECT_TRUE(throws_saying<UserError>([&] { read_all(folder / "w"); }, file.why, folder / "w"))
        << file.content.substr(0, 200);
  }
}

TEST(Safetensors, CutsLongNamesInMessages) {
  const TemporaryFolder folder;
  const std::string name(1'000'000, 'n');
  spill(folder / "w", file_of("{\"" + name + "\":{\"dtype\":1}}", ""));
  EXPECT_LT(message_of<UserError>([&] { read_all(folder / "w"); }).size(), 1000u);
}

TEST(Safetensors, AcceptsTensorsInAnyOrderOfTheHeader) {
  const TemporaryFolder folder;
  spill(folder / "w", file_of(R"({"b":{"data_offsets":[2,4],"shape":[2],"dtype":"U8"},)"
                              R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                              R"("empty":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}})",
                              "abcd"));
  const SafetensorsFile file(folder / "w");
  std::string text(2, '\0');
  file.read_into("b", std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "cd");
}

// Every mutation either opens and reads in full or is refused with a UserError.
TEST(Safetensors, SurvivesMutations) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = pattern(64);
  const std::vector<TensorToWrite> tensors = {
      {.name = "stem.weight", .type = {Shape{2, 2, 4}, DType::f32}, .bytes = bytes},
      {.name = "stem.bias", .type = {Shape{4}, DType::bf16}, .bytes = std::span(bytes).first(8)},
      {.name = "steps", .type = {Shape(), DType::i64}, .bytes = std::span(bytes).first(8)}};
  write_safetensors(folder / "good", tensors, {{"model", "wrn-28-2"}});
  const std::string good = slurp(folder / "good");

  constexpr std::string_view kJsonLike = "0123456789-.eE[]{}\",: \\\n\0\x7f\xff";
  std::mt19937 random(20240229);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  constexpr int kRounds = kSanitized ? 500 : 2500;
  int refused = 0, opened = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string content = good;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(content.size());
      switch (below(7)) {
        case 0:
          content[at] = static_cast<char>(random());
          break;
        case 1:
          content[at] = kJsonLike[below(kJsonLike.size())];
          break;
        case 2:
          content.erase(at, 1 + below(8));
          break;
        case 3:
          content.insert(at, 1 + below(8), kJsonLike[below(kJsonLike.size())]);
          break;
        case 4:
          content.resize(1 + at);
          break;
        case 5:
          content.insert(at, content.substr(below(content.size()), below(64)));
          break;
        default:
          content[at] = static_cast<char>(content[at] ^ (1 << below(8)));
      }
    }
    // Half of the time the length is made to agree, so that edits reach the JSON checks.
    if (content.size() > 8 && below(2) == 0) {
      const size_t data = std::min<size_t>(content.size() - 8, 80);
      content.replace(0, 8, length_bytes(content.size() - 8 - data));
    }
    spill(folder / "w", content);
    try {
      read_all(folder / "w");
      ++opened;
    } catch (const UserError& error) {
      ASSERT_NE(std::string(error.what()).find(folder / "w"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds * 2 / 5);
  EXPECT_GT(opened, kRounds / 25);  // edits of the data or of names
}

}  // namespace
}  // namespace thimble
