#include <gtest/gtest.h>

#include <array>

#include "../file_support.h"
#include "base/error.h"
#include "data/read_image.h"

namespace thimble {
namespace {

constexpr size_t kRecord = 3073;

// Record r of a batch: label r % 10; the byte at position p of a plane says where it is from.
std::string batch(size_t records, int salt) {
  std::string bytes;
  for (size_t r = 0; r < records; ++r) {
    bytes.push_back(static_cast<char>(r % 10));
    for (size_t p = 0; p < kRecord - 1; ++p) {
      bytes.push_back(static_cast<char>(p / 1024 * 80 + p % 64 + r + static_cast<size_t>(salt)));
    }
  }
  return bytes;
}

// Batches of 1, 2, 3, 4, 5 records and a test batch of 2.
void write_batches(const TemporaryFolder& folder, const std::string& prefix = "") {
  for (int i = 1; i <= 5; ++i) {
    spill(folder / fmt::format("{}data_batch_{}.bin", prefix, i), batch(static_cast<size_t>(i), i));
  }
  spill(folder / (prefix + "test_batch.bin"), batch(2, 9));
}

TEST(Cifar10, TurnsPlanesIntoPixelsAcrossFiles) {
  const TemporaryFolder folder;
  write_batches(folder);
  const auto cifar = open_dataset("cifar10", {.folder = folder.path()});
  EXPECT_EQ(cifar->info().train_count, 15);
  EXPECT_EQ(cifar->info().test_count, 2);
  EXPECT_EQ(cifar->info().field("pixels").shape, (Shape{32, 32, 3}));

  std::array<uint8_t, 3072> image;
  int32_t label = -1;
  int64_t index = 0;
  for (int file = 1; file <= 5; ++file) {
    for (int r = 0; r < file; ++r, ++index) {
      read_image(*cifar, Split::train, index, image, label);
      ASSERT_EQ(label, r);
      for (size_t pixel = 0; pixel < 1024; ++pixel) {
        for (size_t c = 0; c < 3; ++c) {
          const size_t stored = c * 80 + pixel % 64 + static_cast<size_t>(r + file);
          ASSERT_EQ(image[3 * pixel + c], static_cast<uint8_t>(stored));
        }
      }
    }
  }
  read_image(*cifar, Split::test, 1, image, label);
  EXPECT_EQ(label, 1);
  EXPECT_EQ(image[0], 10);
  EXPECT_THROW(read_image(*cifar, Split::test, 2, image, label), InternalError);
}

TEST(Cifar10, MeasuresEachChannel) {
  const TemporaryFolder folder;
  std::string record(kRecord, '\0');
  std::fill(record.begin() + 1, record.begin() + 513, '\x64');      // half of red is 100
  std::fill(record.begin() + 1025, record.begin() + 2049, '\x0a');  // all of green is 10
  for (int i = 1; i <= 5; ++i) spill(folder / fmt::format("data_batch_{}.bin", i), record);
  spill(folder / "test_batch.bin", batch(1, 0));
  const auto cifar = open_dataset("cifar10", {.folder = folder.path()});
  EXPECT_EQ(cifar->info().constant("pixel.mean"), (std::vector<float>{50, 10, 0}));
  // The deviation is never below one.
  EXPECT_EQ(cifar->info().constant("pixel.inverse_deviation"),
            (std::vector<float>{1 / 50.f, 1, 1}));
}

TEST(Cifar10, FindsTheFolderInsideTheArchive) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "cifar-10-batches-bin");
  write_batches(folder, "cifar-10-batches-bin/");
  EXPECT_EQ(open_dataset("cifar10", {.folder = folder.path()})->info().train_count, 15);
}

TEST(Cifar10, NamesTheUnsoundFile) {
  const TemporaryFolder folder;
  const auto open = [&] { open_dataset("cifar10", {.folder = folder.path()}); };
  EXPECT_TRUE(throws_saying<UserError>(open, folder / "data_batch_1.bin", "no such file"));
  write_batches(folder);
  std::filesystem::remove(folder / "test_batch.bin");
  EXPECT_TRUE(throws_saying<UserError>(open, folder / "test_batch.bin", "no such file"));

  for (const size_t size : {size_t{0}, kRecord - 1, kRecord + 1, 2 * kRecord - 1}) {
    spill(folder / "test_batch.bin", batch(2, 9).substr(0, size));
    EXPECT_TRUE(throws_saying<UserError>(open, folder / "test_batch.bin", "truncated or oversized",
                                         fmt::format("{} bytes", size)));
  }
  write_batches(folder);
  std::string bad = batch(4, 4);
  bad[2 * kRecord] = 10;
  spill(folder / "data_batch_4.bin", bad);
  EXPECT_TRUE(
      throws_saying<UserError>(open, folder / "data_batch_4.bin", "has the label 10 in record 2"));
}

TEST(Cifar10, AFileThatShrinksLaterIsAnError) {
  const TemporaryFolder folder;
  write_batches(folder);
  const auto cifar = open_dataset("cifar10", {.folder = folder.path()});
  std::filesystem::resize_file(folder / "data_batch_1.bin", 100);
  std::array<uint8_t, 3072> image;
  int32_t label = -1;
  EXPECT_TRUE(throws_saying<UserError>([&] { read_image(*cifar, Split::train, 0, image, label); },
                                       folder / "data_batch_1.bin", "it ends at byte 100"));
}

}  // namespace
}  // namespace thimble
