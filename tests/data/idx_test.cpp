#include "data/format/idx.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

#include "../file_support.h"
#include "base/error.h"
#include "data/read_image.h"

namespace thimble {
namespace {

std::string words(std::initializer_list<uint32_t> values) {
  std::string bytes;
  for (const uint32_t value : values) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  }
  return bytes;
}

std::string images(uint32_t count, uint32_t rows = 2, uint32_t columns = 3) {
  std::string bytes = words({0x803, count, rows, columns});
  for (uint32_t i = 0; i < count * rows * columns; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

std::string labels(uint32_t count) {
  std::string bytes = words({0x801, count});
  for (uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i % 10));
  return bytes;
}

std::string gzip(const std::string& plain) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(plain.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

constexpr const char* kTrainImages = "train-images-idx3-ubyte";
constexpr const char* kTrainLabels = "train-labels-idx1-ubyte";
constexpr const char* kTestImages = "t10k-images-idx3-ubyte";
constexpr const char* kTestLabels = "t10k-labels-idx1-ubyte";

void write_set(const TemporaryFolder& folder) {
  spill(folder / kTrainImages, images(20));
  spill(folder / kTrainLabels, labels(20));
  spill(folder / kTestImages, images(5));
  spill(folder / kTestLabels, labels(5));
}

void expect_whole(const Dataset& idx) {
  EXPECT_EQ(idx.info().train_count, 20);
  EXPECT_EQ(idx.info().test_count, 5);
  EXPECT_EQ(idx.info().field("pixels").shape, (Shape{2, 3, 1}));
  for (const Split split : {Split::train, Split::test}) {
    for (int64_t i = 0; i < idx.info().count(split); ++i) {
      std::vector<uint8_t> image(6);
      int32_t label = -1;
      read_image(idx, split, i, image, label);
      ASSERT_EQ(label, i % 10);
      for (size_t p = 0; p < 6; ++p) ASSERT_EQ(image[p], static_cast<size_t>(i) * 6 + p);
    }
  }
}

TEST(Idx, ReadsPlainFiles) {
  const TemporaryFolder folder;
  write_set(folder);
  const auto opened = open_idx(folder.path(), "mnist", 10);
  const Dataset& idx = *opened;
  expect_whole(idx);
  EXPECT_EQ(idx.info().name, "mnist");
  EXPECT_FLOAT_EQ(idx.info().constant("pixel.mean")[0], 59.5f);  // of 0..119
  EXPECT_NEAR(1 / idx.info().constant("pixel.inverse_deviation")[0], 34.6398f, 1e-3);
}

TEST(Idx, ReadsPackedAndDottedFiles) {
  const TemporaryFolder folder;
  spill(folder / "train-images-idx3-ubyte.gz", gzip(images(20)));
  spill(folder / "train-labels.idx1-ubyte.gz", gzip(labels(20)));
  spill(folder / "t10k-images.idx3-ubyte", images(5));
  // Two gzip members in one file are one stream; the cut lies inside the IDX header.
  spill(folder / "t10k-labels-idx1-ubyte.gz",
        gzip(labels(5).substr(0, 3)) + gzip(labels(5).substr(3)));
  expect_whole(*open_idx(folder.path(), "idx", 10));
}

TEST(Idx, UnpacksMoreThanABuffer) {
  const TemporaryFolder folder;
  write_set(folder);
  std::filesystem::remove(folder / kTrainImages);
  const std::string plain = images(20, 100, 100);
  spill(folder / "train-images-idx3-ubyte.gz", gzip(plain));
  spill(folder / kTestImages, images(5, 100, 100));
  const auto opened = open_idx(folder.path(), "idx", 10);
  const Dataset& idx = *opened;
  std::vector<uint8_t> image(10'000);
  int32_t label = -1;
  read_image(idx, Split::train, 19, image, label);
  EXPECT_EQ(std::string(image.begin(), image.end()), plain.substr(16 + 190'000));
}

TEST(Idx, NamesTheUnsoundFile) {
  const TemporaryFolder folder;
  const auto refuses = [&](const char* name, const std::string& content, const auto&... why) {
    write_set(folder);
    spill(folder / name, content);
    return throws_saying<UserError>([&] { open_idx(folder.path(), "idx", 10); }, folder / name,
                                    why...);
  };
  EXPECT_TRUE(refuses(kTrainImages, "", "truncated: its 0 bytes"));
  EXPECT_TRUE(refuses(kTrainImages, images(20).substr(0, 15), "truncated: its 15 bytes"));
  EXPECT_TRUE(refuses(kTrainImages, images(20).substr(0, 135), "truncated", "wants 136"));
  EXPECT_TRUE(refuses(kTrainImages, images(20) + "x", "oversized", "wants 136"));
  EXPECT_TRUE(refuses(kTrainImages, labels(20), "starts with 0x00000801, not 0x00000803"));
  EXPECT_TRUE(refuses(kTrainImages, images(19), "has 19 images but", "has 20 labels"));
  EXPECT_TRUE(refuses(kTestLabels, labels(6), "has 5 images but", "has 6 labels"));
  EXPECT_TRUE(refuses(kTestImages, images(5, 3, 2), "2x3", "3x2"));
  EXPECT_TRUE(refuses(kTrainImages, words({0x803, 0, 2, 3}), "impossible extents [0,2,3]"));
  EXPECT_TRUE(refuses(kTrainImages, words({0x803, ~0u, ~0u, ~0u}), "impossible extents"));
  std::string bad = labels(20);
  bad[8 + 7] = 11;
  EXPECT_TRUE(refuses(kTrainLabels, bad, "has the label 11 in record 7"));

  write_set(folder);
  std::filesystem::remove(folder / kTestLabels);
  EXPECT_TRUE(throws_saying<UserError>([&] { open_idx(folder.path(), "idx", 10); }, folder.path(),
                                       "has no t10k-labels-idx1-ubyte"));
}

TEST(Idx, MoreClassesWhenToldSo) {
  const TemporaryFolder folder;
  write_set(folder);
  std::string many = labels(20);
  many[8] = 25;
  spill(folder / kTrainLabels, many);
  EXPECT_EQ(open_idx(folder.path(), "idx", 26)->info().field("label").limit, 26);
}

TEST(Idx, RefusesDamagedAndLyingArchives) {
  const TemporaryFolder folder;
  write_set(folder);
  std::filesystem::remove(folder / kTrainImages);
  const std::string name = "train-images-idx3-ubyte.gz";
  const auto refuses = [&](const std::string& content, const auto&... why) {
    spill(folder / name, content);
    return throws_saying<UserError>([&] { open_idx(folder.path(), "idx", 10); }, folder / name,
                                    why...);
  };
  const std::string good = gzip(images(20));
  EXPECT_TRUE(refuses("", "truncated"));
  EXPECT_TRUE(refuses("not gzip at all", "cannot be unpacked"));
  EXPECT_TRUE(refuses(good.substr(0, good.size() - 3), "truncated in the middle"));
  EXPECT_TRUE(refuses(good + "tail", "cannot be unpacked"));
  std::string flipped = good;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  EXPECT_TRUE(refuses(flipped, "incorrect data check"));
  EXPECT_TRUE(refuses(gzip(images(20).substr(0, 10)), "truncated: its 10 bytes"));
  EXPECT_TRUE(refuses(gzip(images(20).substr(0, 100)), "truncated", "100 bytes", "wants 136"));
  EXPECT_TRUE(refuses(gzip(images(20) + "x"), "oversized"));
  EXPECT_TRUE(refuses(gzip(labels(20)), "starts with 0x00000801"));
  // Promises 6 GB in a file of some bytes: refused before anything is unpacked.
  EXPECT_TRUE(refuses(gzip(words({0x803, 1'000'000'000, 2, 3})), "cannot hold"));
  // Unpacks to 50 MB but admits to 120 bytes: stopped there.
  EXPECT_TRUE(refuses(gzip(images(20) + std::string(50'000'000, '\0')), "oversized"));
  EXPECT_TRUE(refuses(good.substr(0, 5) + good, "cannot be unpacked"));

  for (size_t at = 0; at < good.size(); ++at) {  // any single damaged byte: refused or harmless
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    spill(folder / name, damaged);
    try {
      expect_whole(*open_idx(folder.path(), "idx", 10));
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace thimble
