#include "data/format/npy.h"

#include <cstring>

#include "../file_support.h"
#include "base/error.h"
#include "data/dataset.h"

namespace thimble {
namespace {

std::string npy(const std::string& kind, const std::string& shape, const std::string& numbers,
                const std::string& order = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", kind, order, shape);
  header.resize((header.size() + 11 + 63) / 64 * 64 - 10, ' ');
  header.back() = '\n';
  std::string file = std::string("\x93NUMPY\x01\x00", 8);
  file.push_back(static_cast<char>(header.size() & 0xff));
  file.push_back(static_cast<char>(header.size() >> 8));
  return file + header + numbers;
}

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

TEST(Npy, IsReadRowByRow) {
  const TemporaryFolder folder;
  spill(folder / "a.npy", npy("<f4", "(3, 2)", bytes_of<float>({1, 2, 3, 4, 5, 6})));
  const NpyFile file(folder / "a.npy");
  EXPECT_EQ(file.rows(), 3);
  EXPECT_EQ(file.row(), (TensorType{{2}, DType::f32}));
  float row[2];
  file.read(2, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row[0], 5);
  EXPECT_EQ(row[1], 6);
}

TEST(Npy, BadFilesAreNamed) {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& content, auto... words) {
    spill(folder / "a.npy", content);
    return throws_saying<UserError>([&] { NpyFile(folder / "a.npy"); }, "a.npy", words...);
  };
  EXPECT_TRUE(refuses("", "no file of NumPy's"));
  EXPECT_TRUE(refuses("\x93NUMPY", "no file of NumPy's"));
  EXPECT_TRUE(refuses(npy("<f4", "(3,)", "12 bytes, no").substr(0, 40), "header"));
  EXPECT_TRUE(refuses(npy("<f4", "(4,)", "12 bytes, no"), "wants 16 bytes, and there are 12"));
  EXPECT_TRUE(refuses(npy("<f4", "(4611686018427387904, 4)", ""), "truncated"));
  EXPECT_TRUE(refuses(npy(">f4", "(3,)", "12 bytes, no"), "'>f4'"));
  EXPECT_TRUE(refuses(npy("|O", "(3,)", "12 bytes, no"), "'|O'"));
  EXPECT_TRUE(refuses(npy("\x1b[2J", "(3,)", "12 bytes, no"), "'\\x1b[2J'"));
  EXPECT_TRUE(refuses(npy("<f4", "(3,)", "12 bytes, no", "True"), "ascontiguousarray"));
  EXPECT_TRUE(refuses(npy("<f4", "()", "1234"), "has no rows"));
  EXPECT_TRUE(refuses(npy("<f4", "(-3,)", "12 bytes, no"), "its shape"));
}

std::vector<uint8_t> counted(int count) {
  std::vector<uint8_t> numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<uint8_t>(i);
  return numbers;
}

DataRequest in(const TemporaryFolder& folder) {
  return {.folder = folder.path(),
          .wanted = {{.name = "pixels", .dtype = DType::u8, .shape = {2, 2, 1}},
                     {.name = "label", .dtype = DType::i32, .limit = 10}}};
}

TEST(NpySet, HasAFileForEveryField) {
  const TemporaryFolder folder;
  spill(folder / "train_pixels.npy", npy("|u1", "(20, 2, 2, 1)", bytes_of(counted(80))));
  std::vector<int64_t> labels(20);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i) % 3;
  spill(folder / "train_label.npy", npy("<i8", "(20,)", bytes_of(labels)));
  const auto data = open_dataset("npy", in(folder));
  EXPECT_EQ(data->info().train_count, 18);
  EXPECT_EQ(data->info().test_count, 2);
  EXPECT_EQ(data->info().field("label").limit, 3);
  EXPECT_NEAR(data->info().constant("pixel.mean")[0], 35.5, 1e-4);  // of 0 .. 71
  uint8_t pixels[4];
  int32_t label = -1;
  const RecordPart parts[2] = {{reinterpret_cast<std::byte*>(pixels), 2, 2, 2},
                               {reinterpret_cast<std::byte*>(&label), 4, 4, 1}};
  data->read(Split::test, 1, parts);
  EXPECT_EQ(pixels[0], 76);
  EXPECT_EQ(pixels[3], 79);
  EXPECT_EQ(label, 1);
}

TEST(NpySet, BadOnesAreOneSentence) {
  const TemporaryFolder folder;
  const auto refuses = [&](auto... words) {
    return throws_saying<UserError>([&] { open_dataset("npy", in(folder)); }, words...);
  };
  EXPECT_TRUE(refuses("train_pixels.npy"));
  spill(folder / "train_pixels.npy", npy("|u1", "(20, 2, 2, 1)", bytes_of(counted(80))));
  EXPECT_TRUE(refuses("train_label.npy"));
  spill(folder / "train_label.npy", npy("<i4", "(19,)", bytes_of(std::vector<int32_t>(19))));
  EXPECT_TRUE(refuses("train_label.npy' has 19 rows", "has 20"));
  spill(folder / "train_label.npy", npy("<i4", "(20,)", bytes_of(std::vector<int32_t>(20, -1))));
  EXPECT_TRUE(refuses("has -1 in row 0"));
  spill(folder / "train_label.npy", npy("<f4", "(20,)", bytes_of(std::vector<float>(20))));
  EXPECT_TRUE(refuses("rows of f32", "'label' is i32"));
}

}  // namespace
}  // namespace thimble
